import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { Secret } from "../../src/domain/secret.ts";
import { LatchkeyError } from "../../src/sdk/index.ts";
import { clientKinds, clientOf } from "../support/clients.ts";
import { oneEngine } from "../support/engines.ts";
import { startTestServer } from "../support/in-process-server.ts";
import { postJson } from "../support/post-json.ts";
import { rawClient } from "../support/raw-client.ts";
import { TestClock } from "../support/test-clock.ts";
import { share } from "./share.ts";

const idempotencyKey = "order-4711/attempt";
const request = { apiId: "api", ownerId: "owner", remaining: 5, meta: { a: 1, b: { c: [1, 2], d: null } } };
const hourMs = 3_600_000;

/** The code that a caller sees, from any client library. */
function codeOf(error: unknown): string | number | undefined {
  if (error instanceof LatchkeyError) return error.status;
  return error instanceof ConnectError ? error.code : (error as { code?: number }).code;
}

describe.each(oneEngine)("on $name", (engine) => {
  const server = share(async () => startTestServer({ settings: await engine.settings() }));

  describe("a repeated createKey with the same Idempotency-Key", () => {
    it("answers the same key over every kind of client, and after a restart", async () => {
      const settings = await engine.settings();
      const first = await startTestServer({ settings });
      const created = await rawClient(first).keys.createKey(request, { idempotencyKey });
      for (const kind of clientKinds) {
        const client = clientOf(kind, first.baseUrl, first.rootKey);
        expect(await client.createKey(request, { idempotencyKey }), kind).toEqual(created);
      }
      await first.stop();

      const second = await startTestServer({ settings });
      for (const kind of clientKinds) {
        const client = clientOf(kind, second.baseUrl, second.rootKey);
        expect(await client.createKey(request, { idempotencyKey }), kind).toEqual(created);
      }
      expect(await rawClient(second).keys.verifyKey({ key: created.key })).toMatchObject({
        valid: true,
        remaining: 4,
      });
    });

    it("answers the same key also when it has expired meanwhile, and another request is still a conflict", async () => {
      const clock = new TestClock();
      const client = rawClient(await startTestServer({ clock, settings: await engine.settings() })).keys;
      const expiring = { ...request, expires: clock.nowMs() + 1000 };
      const created = await client.createKey(expiring, { idempotencyKey });
      clock.advance(hourMs);

      expect(await client.createKey(expiring, { idempotencyKey })).toEqual(created);
      const other = client.createKey({ ...expiring, remaining: 6 }, { idempotencyKey });
      expect(codeOf(await other.catch((thrown: unknown) => thrown))).toBe(409);
      const first = client.createKey(expiring, { idempotencyKey: "order-4712" });
      expect(codeOf(await first.catch((thrown: unknown) => thrown))).toBe(400);
      clock.advance(24 * hourMs);
      const forgotten = client.createKey(expiring, { idempotencyKey });
      expect(codeOf(await forgotten.catch((thrown: unknown) => thrown))).toBe(400);
    });

    it("is the same request with its fields in any order", async () => {
      const { baseUrl, rootKey } = server();
      const headers = { authorization: `Bearer ${rootKey}`, "idempotency-key": "in-any-order" };
      const bodies = [
        '{"apiId":"api","meta":{"a":1,"b":{"c":[1,2],"d":null}},"remaining":5}',
        '{ "remaining" : 5, "meta": {"b":{"d":null,"c":[1,2]},"a":1}, "apiId":"api" }',
        '{"apiId":"api","enabled":true,"meta":{"a":1,"b":{"c":[1,2],"d":null}},"remaining":5}',
      ];

      const answers = [];
      for (const body of bodies) answers.push(await postJson(baseUrl, "/v1/keys.createKey", body, headers));

      expect(answers[0]?.status).toBe(200);
      expect(answers[1]).toEqual(answers[0]);
      expect(answers[2]).toEqual(answers[0]);
    });

    it.each(clientKinds)("is a conflict over %s when anything else is asked for", async (kind) => {
      const { baseUrl, rootKey } = server();
      const client = clientOf(kind, baseUrl, rootKey);
      const own = { idempotencyKey: `conflict-over-${kind}` };
      await client.createKey(request, own);
      const others = [
        { ...request, remaining: 6 },
        { ...request, meta: { a: 1, b: { c: [2, 1], d: null } } },
        { apiId: "api" },
      ];

      for (const other of others) {
        const error = await client.createKey(other, own).catch((thrown: unknown) => thrown);
        expect(codeOf(error)).toBe(kind === "sdk" ? 409 : Code.AlreadyExists);
      }
      expect(await client.createKey({ apiId: "api" }, { idempotencyKey: `another-over-${kind}` })).toHaveProperty(
        "key",
      );
    });

    it("creates one key, however many ask at once", async () => {
      const { baseUrl, rootKey } = server();
      const clients = clientKinds.map((kind) => clientOf(kind, baseUrl, rootKey));

      const created = await Promise.all(
        Array.from({ length: 50 }, (_, i) =>
          clients[i % clients.length]?.createKey(request, { idempotencyKey: "at-once" }),
        ),
      );

      expect(new Set(created.map((answer) => JSON.stringify([answer?.keyId, answer?.key]))).size).toBe(1);
    });

    it("is a new request after 24 hours, and not before", async () => {
      const clock = new TestClock();
      const client = rawClient(await startTestServer({ clock, settings: await engine.settings() })).keys;
      const created = await client.createKey(request, { idempotencyKey });

      clock.advance(24 * hourMs - 1);
      expect(await client.createKey(request, { idempotencyKey })).toEqual(created);
      clock.advance(1);
      const later = await client.createKey({ ...request, remaining: 6 }, { idempotencyKey });
      expect(later.key).not.toBe(created.key);
      expect(later.keyId).not.toBe(created.keyId);
      expect(await client.createKey({ ...request, remaining: 6 }, { idempotencyKey })).toEqual(later);
      expect(await client.verifyKey({ key: created.key })).toMatchObject({ valid: true });
    });

    it("is a conflict under another root key, which learns the key's id and nothing else, and its own in another API", async () => {
      const rootKeys = ["one-root-key-0123456789-0123456789", "two-root-key-0123456789-0123456789"];
      const settings = { ...(await engine.settings()), rootKeys: rootKeys.map((key) => new Secret(key)) };
      const { baseUrl } = await startTestServer({ settings });
      const [one, two] = rootKeys.map((rootKey) => rawClient({ baseUrl, rootKey }).keys);

      const ofOne = await one?.createKey(request, { idempotencyKey });
      for (const asked of [request, { apiId: "api" }]) {
        const refused = two?.createKey(asked, { idempotencyKey });
        const message = `this Idempotency-Key was used with another root key, for ${ofOne?.keyId}`;
        await expect(refused).rejects.toMatchObject({ status: 409, message });
      }
      const ofTwo = await two?.createKey({ apiId: "another" }, { idempotencyKey });
      expect(ofTwo?.keyId).not.toBe(ofOne?.keyId);
      expect(await one?.createKey(request, { idempotencyKey })).toEqual(ofOne);
      expect(await two?.createKey({ apiId: "another" }, { idempotencyKey })).toEqual(ofTwo);
      await one?.deleteKey({ keyId: ofOne?.keyId ?? "" });
      await expect(one?.createKey(request, { idempotencyKey })).rejects.toThrow("was deleted since");
    });
  });

  describe("what is stored of it", () => {
    it("holds neither the secret, nor the root key, nor the idempotency key, in any file", async () => {
      const settings = await engine.settings();
      const server = await startTestServer({ settings });
      const { keyId, key } = await rawClient(server).keys.createKey(request, { idempotencyKey });
      const whileOpen = await engine.readFiles(settings);
      await server.stop();

      for (const bytes of [whileOpen, await engine.readFiles(settings)]) {
        // Control: a value that may be there is found, so the search works.
        expect(bytes.includes(keyId)).toBe(true);
        for (const secret of [key, key.slice(-20), server.rootKey, idempotencyKey]) {
          expect(bytes.includes(secret)).toBe(false);
          expect(bytes.includes(Buffer.from(secret).toString("base64").slice(0, -4))).toBe(false);
        }
      }
    });
  });
});
