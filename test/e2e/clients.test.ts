import { describe, expect, it } from "vitest";
import { clientKinds, clientOf } from "../support/clients.ts";
import { engines } from "../support/engines.ts";
import { startTestServer } from "../support/in-process-server.ts";

describe.each(engines)("on $name", (engine) => {
  describe.each(clientKinds)("a client over %s", (kind) => {
    it("creates, verifies and deletes a key", async () => {
      const { baseUrl, rootKey } = await startTestServer({ settings: await engine.settings() });
      const client = clientOf(kind, baseUrl, rootKey);

      const created = await client.createKey({
        apiId: "api",
        prefix: "acme_live",
        ownerId: "user_1",
        name: "first",
        meta: { plan: "pro", seats: [1, 2] },
        remaining: 2,
        refill: { interval: "monthly", amount: 10 },
      });
      expect(created.key).toMatch(/^acme_live_[0-9A-Za-z]{39}$/);
      expect(created.keyId).toMatch(/^key_[0-9A-Za-z]{22}$/);

      expect(await client.verifyKey({ key: created.key, apiId: "api" })).toEqual({
        keyId: created.keyId,
        valid: true,
        code: "VALID",
        meta: { plan: "pro", seats: [1, 2] },
        remaining: 1,
        ownerId: "user_1",
        name: "first",
        requestId: expect.stringMatching(/^req_/),
      });
      expect(await client.verifyKey({ key: created.key })).toMatchObject({ valid: true, remaining: 0 });
      expect(await client.verifyKey({ key: created.key })).toMatchObject({
        valid: false,
        code: "USAGE_EXCEEDED",
        remaining: 0,
      });

      expect(await client.deleteKey({ keyId: created.keyId })).toEqual({});
      expect(await client.verifyKey({ key: created.key })).toEqual({
        valid: false,
        code: "NOT_FOUND",
        meta: {},
        requestId: expect.stringMatching(/^req_/),
      });
    });
  });
});
