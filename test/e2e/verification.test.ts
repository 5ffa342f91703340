import { describe, expect, it } from "vitest";
import type { CreateKeyRequest } from "../../src/sdk/index.ts";
import { clientKinds, clientOf } from "../support/clients.ts";
import { oneEngine } from "../support/engines.ts";
import { startTestServer } from "../support/in-process-server.ts";
import { postJson } from "../support/post-json.ts";
import { rawClient } from "../support/raw-client.ts";
import { readMetric } from "../support/read-metric.ts";
import { TestClock } from "../support/test-clock.ts";
import { share } from "./share.ts";

const requestId = expect.stringMatching(/^req_[0-9A-Za-z]+$/);

describe.each(oneEngine)("on $name", (engine) => {
  const startOn = async (clock: TestClock) => startTestServer({ clock, settings: await engine.settings() });
  const shared = share(async () => {
    const clock = new TestClock();
    return { ...(await startOn(clock)), clock };
  });
  const another = share(() => startOn(new TestClock()));

  /** Each test has keys of its own, and the time that it begins with. */
  function start(time = "2026-01-15T12:00:00Z") {
    const { clock, ...server } = shared();
    clock.stepTo(time);
    return { ...server, clock, client: rawClient(server).keys };
  }

  describe("a verification", () => {
    it.each([
      ["is disabled", { enabled: false }, "DISABLED"],
      ["has expired", { expires: Date.parse("2026-01-15T12:00:01Z") }, "EXPIRED"],
      ["is disabled and has expired", { enabled: false, expires: Date.parse("2026-01-15T12:00:01Z") }, "DISABLED"],
    ])("of a key that %s says so, and uses nothing", async (_, properties, code) => {
      const { client, clock } = start();
      const { keyId, key } = await client.createKey({ apiId: "api", remaining: 3, ...properties });
      clock.advance(1000);

      for (let i = 0; i < 2; i++) {
        expect(await client.verifyKey({ key })).toMatchObject({ keyId, valid: false, code, remaining: 3 });
      }
    });

    it("is valid until the millisecond before the key expires", async () => {
      const { client, clock } = start("2026-01-15T12:00:00Z");
      const expires = clock.nowMs() + 1000;
      const { key } = await client.createKey({ apiId: "api", expires });

      clock.advance(999);
      expect(await client.verifyKey({ key })).toMatchObject({ valid: true, expires });
      clock.advance(1);
      expect(await client.verifyKey({ key })).toMatchObject({ valid: false, code: "EXPIRED", expires });
    });

    it("for another API is forbidden, tells nothing of the key and uses nothing", async () => {
      const { client } = start();
      const properties = { ownerId: "owner", name: "name", meta: { secret: true }, expires: 253402300799999 };
      for (const more of [{}, { enabled: false }]) {
        const { key } = await client.createKey({ apiId: "mine", remaining: 1, ...properties, ...more });

        const reason = { check: "api", message: "the key belongs to another API" };
        const forbidden = { valid: false, code: "FORBIDDEN", meta: {}, requestId, reason, ratelimits: [] };
        expect(await client.verifyKey({ key, apiId: "theirs" })).toEqual(forbidden);
        expect(await client.verifyKey({ key, apiId: "mine" })).toMatchObject({
          remaining: more.enabled === false ? 1 : 0,
        });
      }
    });

    it.each(clientKinds)("over %s answers alike for every key that does not exist", async (kind) => {
      const server = start();
      const client = clientOf(kind, server.baseUrl, server.rootKey);
      const deleted = await client.createKey({ apiId: "api", remaining: 1 });
      expect(await client.verifyKey({ key: deleted.key })).toMatchObject({ valid: true });
      await client.deleteKey({ keyId: deleted.keyId });
      const elsewhere = await rawClient(another()).keys.createKey({ apiId: "api" });
      const mistyped = `${deleted.key.slice(0, -1)}${deleted.key.endsWith("0") ? "1" : "0"}`;

      for (const key of [deleted.key, elsewhere.key, mistyped, "x", "é".repeat(1000)]) {
        const answer = await client.verifyKey({ key });
        expect(answer).toEqual({ valid: false, code: "NOT_FOUND", meta: {}, requestId, ratelimits: [] });
      }
    });

    it("of a text with a wrong checksum asks neither the cache nor the store", async () => {
      const { client, internalPort } = start();
      const { key } = await client.createKey({ apiId: "api" });
      await client.verifyKey({ key });
      const looks = () => readMetric(internalPort, "latchkey_key_cache_total");
      const before = await looks();

      for (let i = 1; i <= 20; i++) await client.verifyKey({ key: key.slice(i) });
      expect(await looks()).toBe(before);
      await client.verifyKey({ key });
      expect(await looks()).toBe(before + 1);
    });
  });

  describe("a counter", () => {
    it("that waits at 0 is refilled at midnight, once, and not beyond its amount", async () => {
      const { client, clock } = start("2026-01-15T12:00:00Z");
      const refill = { interval: "daily" as const, amount: 2 };
      const { key } = await client.createKey({ apiId: "api", remaining: 0, refill });
      const verify = () => client.verifyKey({ key });
      const exceeded = { valid: false, code: "USAGE_EXCEEDED", remaining: 0 };

      expect(await verify()).toMatchObject(exceeded);
      clock.stepTo("2026-01-15T23:59:59.999Z");
      expect(await verify()).toMatchObject(exceeded);
      clock.stepTo("2026-01-16T00:00:00.000Z");
      expect(await verify()).toMatchObject({ valid: true, remaining: 1 });
      clock.stepTo("2026-01-15T12:00:00Z");
      expect(await verify()).toMatchObject({ valid: true, remaining: 0 });
      clock.stepTo("2026-01-16T18:00:00Z");
      expect(await verify()).toMatchObject(exceeded);
      clock.stepTo("2026-01-20T00:00:00Z");
      expect(await verify()).toMatchObject({ valid: true, remaining: 1 });
    });

    it.each([
      ["daily", "2028-02-28T12:00:00Z", "2028-02-28T23:59:59.999Z", "2028-02-29T00:00:00Z"],
      ["monthly", "2028-02-28T12:00:00Z", "2028-02-29T23:59:59.999Z", "2028-03-01T00:00:00Z"],
      ["monthly", "2026-12-01T00:00:00Z", "2026-12-31T23:59:59.999Z", "2027-01-01T00:00:00Z"],
    ] as const)(
      "refilled %s and made at %s has nothing at %s and is full at %s",
      async (interval, made, before, at) => {
        const { client, clock } = start(made);
        const { key } = await client.createKey({ apiId: "api", remaining: 0, refill: { interval, amount: 7 } });

        clock.stepTo(before);
        expect(await client.verifyKey({ key })).toMatchObject({ valid: false, remaining: 0 });
        clock.stepTo(at);
        expect(await client.verifyKey({ key })).toMatchObject({ valid: true, remaining: 6 });
      },
    );

    it("keeps what is above its amount, and piles up only with carryOver", async () => {
      const { client, clock } = start("2026-01-15T12:00:00Z");
      const create = (carryOver: boolean) =>
        client.createKey({ apiId: "api", remaining: 10, refill: { interval: "daily", amount: 4, carryOver } });
      const [restored, piled] = [await create(false), await create(true)];

      clock.stepTo("2026-01-18T00:00:00Z");
      expect(await client.verifyKey({ key: restored.key })).toMatchObject({ valid: true, remaining: 9 });
      expect(await client.verifyKey({ key: piled.key })).toMatchObject({ valid: true, remaining: 10 + 3 * 4 - 1 });
    });

    it("is absent if none was asked for, and then there is no bound", async () => {
      const { client } = start();
      const { keyId, key } = await client.createKey({ apiId: "api" });

      for (let i = 0; i < 5; i++) {
        expect(await client.verifyKey({ key })).toEqual({
          keyId,
          valid: true,
          code: "VALID",
          meta: {},
          requestId,
          ratelimits: [],
        });
      }
    });
  });

  describe("a created key", () => {
    it.each([
      [{ byteLength: 16 }, /^[0-9A-Za-z]{28}$/],
      [{}, /^[0-9A-Za-z]{39}$/],
      [{ byteLength: 255 }, /^[0-9A-Za-z]{349}$/],
      [{ prefix: "p", byteLength: 32 }, /^p_[0-9A-Za-z]{49}$/],
      [{ prefix: "Acme_Live_16chrs" }, /^Acme_Live_16chrs_[0-9A-Za-z]{39}$/],
    ] satisfies [Partial<CreateKeyRequest>, RegExp][])(
      "with %j has its prefix and length",
      async (properties, form) => {
        const { client } = start();
        const { key } = await client.createKey({ apiId: "api", ...properties });

        expect(key).toMatch(form);
        expect(await client.verifyKey({ key })).toMatchObject({ valid: true });
      },
    );

    it.each([
      ["with a counter", { remaining: 1_000_000 }],
      ["without a counter", {}],
    ])("%s is gone at once for every caller when it is deleted while it is being used", async (_, properties) => {
      const { client } = start();
      const { keyId, key } = await client.createKey({ apiId: "api", ...properties });
      expect(await client.verifyKey({ key })).toMatchObject({ valid: true });
      let deleted = false;
      const users = Array.from({ length: 8 }, async () => {
        while (!deleted) await client.verifyKey({ key });
        return client.verifyKey({ key });
      });

      await client.deleteKey({ keyId });
      deleted = true;

      for (const { code } of await Promise.all(users)) expect(code).toBe("NOT_FOUND");
      await expect(client.deleteKey({ keyId })).rejects.toMatchObject({ status: 404 });
    });
  });

  describe("the JSON text of an answer", () => {
    it("has numbers as numbers, and says false, 0 and {} outright", async () => {
      const { baseUrl, client } = start();
      const expires = 253402300799999;
      const { keyId, key } = await client.createKey({ apiId: "api", remaining: 1, expires });
      const verify = async () =>
        (await postJson(baseUrl, "/v1/keys.verifyKey", { key })).text.replace(/"req_\w+"/, '"req_"');

      const rest = `"meta":{},"remaining":0,"expires":${expires},"requestId":"req_"`;
      const reason = '"reason":{"check":"counter","of":"key","message":"the counter of the key has not enough left"}';
      expect(await verify()).toBe(`{"keyId":"${keyId}","valid":true,"code":"VALID",${rest},"ratelimits":[]}`);
      expect(await verify()).toBe(
        `{"keyId":"${keyId}","valid":false,"code":"USAGE_EXCEEDED",${rest},${reason},"ratelimits":[]}`,
      );
      await client.deleteKey({ keyId });
      expect(await verify()).toBe('{"valid":false,"code":"NOT_FOUND","meta":{},"requestId":"req_","ratelimits":[]}');
    });

    it("gives metadata back as it was", async () => {
      const { client } = start();
      const meta = { n: 1.5, text: 'ü"\\', deep: { list: [1, "2", null, false, {}] }, empty: {}, __proto: 0 };
      const { key } = await client.createKey({ apiId: "api", meta });

      expect((await client.verifyKey({ key })).meta).toEqual(meta);
    });
  });
});
