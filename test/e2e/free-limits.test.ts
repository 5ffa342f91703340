import { describe, expect, it } from "vitest";
import { clientKinds, latchkeyOf } from "../support/clients.ts";
import { oneEngine } from "../support/engines.ts";
import { startTestServer } from "../support/in-process-server.ts";
import { TestClock } from "../support/test-clock.ts";
import { share } from "./share.ts";

const duration = 60_000;

describe.each(oneEngine)("free-standing limits on $name", (engine) => {
  const server = share(async () => startTestServer({ settings: await engine.settings() }));

  describe.each([
    ["local", true],
    ["strict", false],
  ])("%s", (_, async) => {
    it.each(clientKinds)("let exactly the limit pass, and say what is left, over %s", async (kind) => {
      const { baseUrl, rootKey } = server();
      const { ratelimits } = latchkeyOf(kind, baseUrl, rootKey);
      const ask = { namespace: `login over ${kind}`, identifier: "192.0.2.1", limit: 3, duration, async };
      const startedMs = Date.now();
      for (const remaining of [2, 1, 0]) {
        const answer = await ratelimits.limit(ask);
        expect(answer).toEqual({ success: true, limit: 3, remaining, reset: expect.any(Number) });
        expect(answer.reset).toBeGreaterThan(startedMs + duration - 1000);
        expect(answer.reset).toBeLessThan(Date.now() + duration + 1000);
      }
      expect(await ratelimits.limit(ask)).toMatchObject({ success: false, limit: 3, remaining: 0 });
      expect(await ratelimits.limit({ ...ask, cost: 0 })).toMatchObject({ success: true, remaining: 0 });
    });

    it("count what differs in namespace, identifier, API, duration or mode apart, and hold each request to its own limit", async () => {
      const { baseUrl, rootKey } = server();
      const { ratelimits } = latchkeyOf("sdk", baseUrl, rootKey);
      const ask = { namespace: `n ${async}`, identifier: "i", limit: 1, duration, async };
      const others = [
        {},
        { namespace: "m" },
        { identifier: "j" },
        { apiId: "a" },
        { duration: duration + 1 },
        { async: !async },
      ];
      for (const other of others) expect(await ratelimits.limit({ ...ask, ...other })).toMatchObject({ success: true });
      for (const other of others)
        expect(await ratelimits.limit({ ...ask, ...other })).toMatchObject({ success: false });
      expect(await ratelimits.limit({ ...ask, limit: 2 })).toMatchObject({ success: true, limit: 2, remaining: 0 });
      expect(await ratelimits.limit(ask)).toMatchObject({ success: false, limit: 1, remaining: 0 });
      expect(await ratelimits.limit({ ...ask, limit: 9, cost: 8 })).toMatchObject({
        success: false,
        limit: 9,
        remaining: 7,
      });
      expect(await ratelimits.limit({ ...ask, limit: 9, cost: 7 })).toMatchObject({
        success: true,
        limit: 9,
        remaining: 0,
      });
    });

    it("touch nothing of a key whose id they are called by", async () => {
      const { baseUrl, rootKey } = server();
      const { keys, ratelimits } = latchkeyOf("sdk", baseUrl, rootKey);
      const { key, keyId } = await keys.createKey({ apiId: "a", ratelimit: { async, limit: 2, duration } });
      for (const [namespace, identifier] of [
        ["k", keyId],
        [keyId, keyId],
        [keyId, "x"],
      ] as const) {
        for (let i = 0; i < 3; i++) await ratelimits.limit({ namespace, identifier, limit: 2, duration, async });
      }
      expect(await keys.verifyKey({ key })).toMatchObject({ code: "VALID", ratelimit: { remaining: 1 } });
    });
  });

  it("need an API of a root key that is limited to some, and do not exist for it in others", async () => {
    const { baseUrl, rootKey } = server();
    const { rootKey: limited } = await latchkeyOf("sdk", baseUrl, rootKey).rootKeys.createRootKey({
      permissions: ["ratelimits.limit"],
      apiIds: ["mine"],
    });
    const { ratelimits } = latchkeyOf("sdk", baseUrl, limited);
    const ask = { namespace: "n", identifier: "i", limit: 1, duration };
    expect(await ratelimits.limit({ ...ask, apiId: "mine" })).toMatchObject({ success: true });
    await expect(ratelimits.limit({ ...ask, apiId: "theirs" })).rejects.toMatchObject({ code: "NOT_FOUND" });
    await expect(ratelimits.limit(ask)).rejects.toMatchObject({
      code: "BAD_REQUEST",
      message: expect.stringContaining("apiId: is needed"),
    });
  });
});

describe("free-standing limits", () => {
  it("have windows of their own: when all are open they get 503, and keys go on", async () => {
    const clock = new TestClock();
    const { baseUrl, rootKey } = await startTestServer({ clock, settings: { freeWindowsMax: 2, windowsMax: 1 } });
    const { keys, ratelimits } = latchkeyOf("sdk", baseUrl, rootKey);
    const ask = (identifier: string) => ratelimits.limit({ namespace: "n", identifier, limit: 1, duration });
    await ask("a");
    await ask("b");
    await expect(ask("c")).rejects.toMatchObject({ code: "SERVICE_UNAVAILABLE" });
    const { key } = await keys.createKey({ apiId: "a", ratelimit: { limit: 5, duration } });
    expect(await keys.verifyKey({ key })).toMatchObject({ code: "VALID" });
    expect(await ask("a")).toMatchObject({ success: false });
  });
});
