import { expect } from "vitest";
import type { NewKey, StoredKey } from "../../src/domain/key.ts";
import type { Store } from "../../src/store/store.ts";
import { createKey, deleteKey, setRateLimit } from "../support/manage.ts";
import type { ContractCase } from "./contract-case.ts";
import { refillRule, sampleKey } from "./sample-keys.ts";
import { settle } from "./settle.ts";

/** A new key as it is read, without a counter. */
function readAs({ secretDigest: _, remaining: __, refill: ___, ...key }: NewKey): StoredKey {
  const { start, createdAtMs } = key;
  const secrets = [{ start, createdAtMs, expiresAtMs: undefined }];
  return { ...key, updatedAtMs: createdAtMs, version: 1, counter: undefined, secrets };
}

const byId = ({ management }: Store, { id }: NewKey) => management.read({ kind: "key", id });
const bySecret = ({ management }: Store, { secretDigest }: NewKey) =>
  management.read({ kind: "keyOfSecret", digest: secretDigest, nowMs: 1 });

export const storedKeyCases: readonly ContractCase[] = [
  {
    name: "a key is read by its id and by the digest of its secret, with everything but the secret",
    async run(store, clock) {
      const plain = sampleKey(clock);
      const full = sampleKey(clock, {
        ownerId: "owner",
        name: "name",
        meta: { plan: ["pro", 1, null] },
        enabled: false,
        expiresAtMs: clock.nowMs() + 1000,
        rateLimit: { mode: "strict", limit: 3, durationMs: 60_000 },
        rateLimits: [
          { name: "minute", rule: { mode: "strict", limit: 3, durationMs: 60_000 } },
          { name: "a.B-_9", rule: { mode: "local", limit: 5, durationMs: 1000 } },
        ],
        costMax: 7,
        environment: "production",
        permissions: ["docs.*", "a:b-c_d.E"],
        ipAllow: ["10.0.0.0/8", "::ffff:1.2.3.4", "2001:db8::/32"],
      });
      for (const key of [plain, full]) await createKey(store.management, key);
      for (const key of [plain, full]) {
        expect(await byId(store, key)).toEqual(readAs(key));
        expect(await bySecret(store, key)).toEqual(readAs(key));
      }
      expect(JSON.stringify(await byId(store, full))).not.toContain(full.secretDigest);
    },
  },
  {
    name: "reading neither takes an id for a digest nor finds a key that is gone",
    async run(store, clock) {
      const key = sampleKey(clock);
      await createKey(store.management, key);
      expect(await store.management.read({ kind: "key", id: key.secretDigest })).toBeUndefined();
      expect(await store.management.read({ kind: "keyOfSecret", digest: key.id, nowMs: 1 })).toBeUndefined();
      await deleteKey(store.management, key.id);
      expect([await byId(store, key), await bySecret(store, key)]).toEqual([undefined, undefined]);
    },
  },
  {
    name: "a counter is read with every refill that is due, which reading does not apply",
    async run(store, clock) {
      clock.stepTo("2026-01-30T12:00:00.000Z");
      const daily = sampleKey(clock, { remaining: 5, refill: refillRule({ amount: 7, carryOver: true }) });
      const monthly = sampleKey(clock, { remaining: 5, refill: refillRule({ interval: "monthly", amount: 100 }) });
      const never = sampleKey(clock, { remaining: 5 });
      for (const key of [daily, monthly, never]) await createKey(store.management, key);
      const remaining = async () =>
        Promise.all([daily, monthly, never].map(async (key) => (await byId(store, key))?.counter?.remaining));
      expect(await remaining()).toEqual([5, 5, 5]);
      clock.stepTo("2026-02-02T00:00:00.000Z");
      expect(await remaining()).toEqual([26, 100, 5]);
      expect((await byId(store, daily))?.counter?.refill).toEqual({
        ...refillRule({ amount: 7, carryOver: true }),
        refilledThroughMs: Date.UTC(2026, 1, 2),
      });
      await settle(
        store,
        [daily, monthly, never].map(({ id }) => ({ subject: id, cost: 1, count: 1 })),
      );
      expect(await remaining()).toEqual([25, 99, 4]);
    },
  },
  {
    name: "the version and the time of the last change move with changes, not with uses",
    async run(store, clock) {
      const key = sampleKey(clock, { remaining: 5 });
      await createKey(store.management, key);
      await settle(store, [{ subject: key.id, cost: 1, count: 2 }]);
      expect(await byId(store, key)).toMatchObject({ version: 1, updatedAtMs: key.createdAtMs });
      await setRateLimit(store.management, key.id, { mode: "local", limit: 1, durationMs: 1000 }, 77);
      expect(await byId(store, key)).toMatchObject({ version: 2, updatedAtMs: 77, createdAtMs: key.createdAtMs });
    },
  },
];
