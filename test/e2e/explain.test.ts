import { describe, expect, it } from "vitest";
import type { KeysClient } from "../../src/sdk/index.ts";
import { clientKinds, clientOf } from "../support/clients.ts";
import { engines, oneEngine } from "../support/engines.ts";
import { startTestServer } from "../support/in-process-server.ts";
import { rawClient } from "../support/raw-client.ts";
import { hasPostgres } from "../support/test-database.ts";

type Created = Awaited<ReturnType<KeysClient["createKey"]>>;
const hour = { duration: 3_600_000 };

/** Keys that were used on one client, each with what is asked of it on the other. */
async function usedKeys(client: KeysClient): Promise<(readonly [Created, object])[]> {
  const use = async (given: object, times: number, cost: object = {}) => {
    const created = await client.createKey({ apiId: "api", ...given });
    for (let i = 0; i < times; i++) await client.verifyKey({ key: created.key, ...cost });
    return created;
  };
  const strict = { ...hour, async: false };
  const disabled = await use({ enabled: false }, 0);
  return [
    [await use({}, 0), {}],
    [await use({}, 0), { apiId: "another" }],
    [disabled, { permissions: "docs.read" }],
    [await use({ permissions: ["docs.*"] }, 1), { permissions: "docs.read AND admin" }],
    [await use({ ipAllow: ["10.0.0.0/8"] }, 0), {}],
    [await use({ remaining: 3 }, 2), { remaining: { cost: 2 } }],
    [await use({ remaining: 3 }, 2), { remaining: { cost: 1 } }],
    [await use({ ratelimit: { ...strict, limit: 4 } }, 3), { ratelimit: { cost: 2 } }],
    [await use({ ratelimit: { ...strict, limit: 4 } }, 3), {}],
    [await use({ ratelimit: { ...strict, limit: 4 } }, 4), {}],
    [await use({ ratelimits: [{ name: "day", ...strict, limit: 9 }] }, 1, named("day", 6)), named("day", 4)],
    [await use({ ratelimits: [{ name: "day", ...strict, limit: 9 }] }, 1, named("day", 6)), named("day", 3)],
  ];
}

const named = (name: string, cost: number) => ({ ratelimits: [{ name, cost }] });

/** Each is explained, by its id and by itself, and then verified, on a client that has not seen it. */
async function expectAgreement(keys: readonly (readonly [Created, object])[], client: KeysClient): Promise<void> {
  const codes = new Set<string>();
  for (const [{ keyId, key }, request] of keys) {
    const explained = await client.explainKey({ keyId, ...request });
    expect(await client.explainKey({ key, ...request })).toMatchObject({ code: explained.code });
    const { code, reason } = await client.verifyKey({ key, ...request });
    expect([request, explained.code, explained.reason]).toEqual([request, code, reason]);
    codes.add(code);
  }
  expect(codes.size).toBeGreaterThan(5);
}

describe.each(oneEngine)("an explanation on $name", (engine) => {
  it("has every check with its numbers before the take, over every protocol", async () => {
    const { baseUrl, rootKey } = await startTestServer({ settings: await engine.settings() });
    for (const kind of clientKinds) {
      const client = clientOf(kind, baseUrl, rootKey);
      const ratelimits = [{ name: "day", ...hour, async: false, limit: 9 }];
      const ratelimit = { ...hour, limit: 5 };
      const refill = { interval: "monthly", amount: 7 } as const;
      const given = { apiId: "api", remaining: 7, refill, ratelimit, ratelimits, permissions: ["docs.*"] };
      const { keyId, key } = await client.createKey(given);
      await client.verifyKey({ key });
      const asked = { apiId: "api", permissions: "docs.read AND admin", remaining: { cost: 6 }, ...named("day", 9) };
      const explained = await client.explainKey({ keyId, ...asked });
      const nextRefillAt = (await client.getKey({ keyId })).refill?.nextRefillAt;
      const message = "the key lacks admin";
      expect(explained).toEqual({
        code: "INSUFFICIENT_PERMISSIONS",
        reason: { check: "permissions", missing: "admin", message },
        checks: [
          { name: "api", passed: true, message: "the key belongs to this API" },
          { name: "enabled", passed: true, of: "key", message: "the key is enabled" },
          { name: "expiry", passed: true, message: "the key does not expire" },
          { name: "ip", passed: true, message: "the key can be used from all addresses" },
          { name: "permissions", passed: false, missing: "admin", message },
          {
            name: "limit",
            passed: true,
            of: "key",
            ratelimit: { limit: 5, remaining: 4, reset: expect.any(Number), cost: 1, async: true },
            message: "the limit of the key suffices: 4 of 5 left, 1 needed (local)",
          },
          {
            name: "limit",
            passed: false,
            of: "key",
            ratelimit: { name: "day", limit: 9, remaining: 8, reset: expect.any(Number), cost: 9, async: false },
            message: "the limit day of the key has not enough left: 8 of 9 left, 9 needed (strict)",
          },
          {
            name: "counter",
            passed: true,
            of: "key",
            counter: { remaining: 6, cost: 6, nextRefillAt },
            message: `the counter of the key suffices: 6 left, 6 needed, refilled at ${new Date(nextRefillAt ?? 0).toISOString()}`,
          },
        ],
      });
      expect(await client.explainKey({ key, ...asked })).toEqual(explained);
      expect(await client.verifyKey({ key })).toMatchObject({
        code: "VALID",
        remaining: 5,
        ratelimit: { remaining: 3 },
      });
    }
  });

  it("of what is not there is NOT_FOUND as a code by key, and as an error by keyId, alike for what is not there for the caller", async () => {
    const server = await startTestServer({ settings: await engine.settings() });
    const { keys, rootKeys } = rawClient(server);
    const foreign = await keys.createKey({ apiId: "foreign" });
    const { rootKey } = await rootKeys.createRootKey({ name: "r", permissions: ["keys.read"], apiIds: ["api"] });
    const limited = rawClient({ ...server, rootKey }).keys;
    const nothing = { code: "NOT_FOUND", checks: [] };
    expect(await keys.explainKey({ key: "no key" })).toEqual(nothing);
    expect(await limited.explainKey({ key: foreign.key })).toEqual(nothing);
    for (const keyId of [foreign.keyId, "key_unknown"])
      await expect(limited.explainKey({ keyId })).rejects.toMatchObject({
        status: 404,
        code: "NOT_FOUND",
        message: "there is no such key",
      });
    const { rootKey: blind } = await rootKeys.createRootKey({ name: "b", permissions: ["keys.verify"], allApis: true });
    await expect(rawClient({ ...server, rootKey: blind }).keys.explainKey({ keyId: "k" })).rejects.toMatchObject({
      status: 403,
    });
  });

  it("refuses a cost above costMax as a verification does", async () => {
    const { keys } = rawClient(await startTestServer({ settings: await engine.settings() }));
    const { keyId, key } = await keys.createKey({ apiId: "api", costMax: 3 });
    const error = { status: 400, message: "remaining.cost: must be at most 3, the costMax of the key" };
    await expect(keys.explainKey({ keyId, remaining: { cost: 4 } })).rejects.toMatchObject(error);
    await expect(keys.verifyKey({ key, remaining: { cost: 4 } })).rejects.toMatchObject(error);
  });
});

describe("an explanation on a replica that has never seen the key", () => {
  it.runIf(hasPostgres)("agrees with the verification after it, on two replicas with one Postgres", async () => {
    const settings = await (engines[1] as (typeof engines)[1]).settings();
    const [one, two] = await Promise.all([startTestServer({ settings }), startTestServer({ settings })]);
    const keys = await usedKeys(rawClient(one).keys);
    await expectAgreement(keys, rawClient(two).keys);
  });

  it("agrees on edges", async () => {
    const coordinator = await startTestServer({ settings: { role: "coordinator" } });
    const settings = { role: "edge", coordinators: [`127.0.0.1:${coordinator.internalPort}`] } as const;
    const [one, two] = await Promise.all([startTestServer({ settings }), startTestServer({ settings })]);
    const keys = await usedKeys(rawClient(one).keys);
    await expectAgreement(keys, rawClient(two).keys);
  });
});
