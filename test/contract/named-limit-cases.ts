import { expect } from "vitest";
import type { KeyFieldChanges, NewKey } from "../../src/domain/key.ts";
import { limitsMax, type NamedRateLimit } from "../../src/domain/limits.ts";
import type { RateLimit } from "../../src/domain/rate-limit.ts";
import { limitOfKey } from "../../src/domain/subject.ts";
import type { Store } from "../../src/store/store.ts";
import {
  createKey,
  deleteApiKeys,
  deleteKey,
  importKeys,
  rerollKey,
  setRateLimit,
  stopApi,
  testEvent,
} from "../support/manage.ts";
import { ones } from "../support/ones.ts";
import type { ContractCase } from "./contract-case.ts";
import { ask, permitAsk, strict, windowMs } from "./permit-asks.ts";
import { foundAs, sampleKey } from "./sample-keys.ts";
import { exchange } from "./settle.ts";
import { created } from "./usage-cases.ts";

const local = (limit: number): RateLimit => ({ ...strict(limit), mode: "local" });

/** Limits by their names. */
function named(rules: Readonly<Record<string, RateLimit>>): readonly NamedRateLimit[] {
  return Object.entries(rules).map(([name, rule]) => ({ name, rule }));
}

const wanted = (store: Store, key: NewKey, name: string, count: number) =>
  ask(store, { id: limitOfKey(key.id, name) }, { waiting: ones(count) });

const isMissing = async (store: Store, key: NewKey, name: string) => {
  const [result] = await exchange(store, [{ subject: limitOfKey(key.id, name), ...permitAsk({ waiting: ones(1) }) }]);
  return result?.outcome === "missing";
};

const update = ({ management }: Store, { id }: NewKey, changes: KeyFieldChanges, ifVersion?: number) =>
  management.change({ kind: "updateKey", id, changes, ifVersion, event: testEvent() });

const setLimits = (store: Store, key: NewKey, rules: Readonly<Record<string, RateLimit>> | null) =>
  update(store, key, { rateLimits: rules && named(rules) });

/** What is promised of limits with names. What is promised of one without a name is in `rateLimitCases`. */
export const namedLimitCases: readonly ContractCase[] = [
  {
    name: "each strict limit of a key has a window of its own",
    async run(store, clock) {
      const rateLimits = named({ minute: strict(3), local: local(4), second: strict(5, 1000) });
      const key = await created(store, clock, { rateLimit: strict(10), rateLimits });
      const other = await created(store, clock, { rateLimits });
      expect(await wanted(store, key, "minute", 9)).toMatchObject({ granted: 3, limit: 3, endsInMs: windowMs });
      expect(await wanted(store, key, "second", 9)).toMatchObject({ granted: 5, limit: 5, endsInMs: 1000 });
      expect(await ask(store, key, { waiting: ones(20) })).toMatchObject({ granted: 10, limit: 10 });
      expect(await wanted(store, other, "minute", 9)).toMatchObject({ granted: 3 });
      expect(await isMissing(store, key, "local")).toBe(true);
      expect(await isMissing(store, key, "none")).toBe(true);
      clock.advance(1000);
      expect(await wanted(store, key, "minute", 9)).toMatchObject({ granted: 0 });
      expect(await wanted(store, key, "second", 9)).toMatchObject({ granted: 5, gen: 2 });
    },
  },
  {
    name: "imported keys have windows for their strict limits, also as many as there can be; those left out have none",
    async run(store, clock) {
      const existing = await created(store, clock);
      const rateLimits = named(
        Object.fromEntries(Array.from({ length: limitsMax }, (_, i) => [`n${i}`, strict(i + 1)])),
      );
      const keys = Array.from({ length: 100 }, () => ({
        ...sampleKey(clock, { rateLimit: strict(9), rateLimits }),
        eventId: testEvent().id,
      }));
      const again = { ...(keys[99] as (typeof keys)[0]), secretDigest: existing.secretDigest };
      await importKeys(store.management, [...keys.slice(0, 99), again]);
      for (const key of keys.slice(0, 99).filter((_, i) => i % 49 === 0)) {
        expect(await ask(store, key, { waiting: ones(10) })).toMatchObject({ granted: 9 });
        for (let i = 0; i < limitsMax; i++)
          expect(await wanted(store, key, `n${i}`, 10)).toMatchObject({ granted: i + 1 });
      }
      expect(await isMissing(store, again, "n0")).toBe(true);
    },
  },
  {
    name: "a limit that keeps its name keeps its open window, whatever becomes of it",
    async run(store, clock) {
      const key = await created(store, clock, { rateLimits: named({ a: strict(10), b: strict(10) }) });
      const { endsAtMs } = await wanted(store, key, "a", 9);
      await setLimits(store, key, { b: strict(10), a: strict(12, 1000) });
      const open = { gen: 1, endsAtMs };
      expect(await wanted(store, key, "a", 9)).toMatchObject({ ...open, granted: 3, limit: 12 });
      for (const detour of [{ a: local(5) }, null, { b: strict(1) }]) await setLimits(store, key, detour);
      await setLimits(store, key, { a: strict(15) });
      expect(await wanted(store, key, "a", 9)).toMatchObject({ ...open, granted: 3, outstanding: 15, limit: 15 });
      clock.advance(windowMs);
      expect(await wanted(store, key, "a", 20)).toMatchObject({ gen: 2, granted: 15 });
    },
  },
  {
    name: "a limit that was removed or renamed is missing; one that became local still serves replicas that do not know it yet",
    async run(store, clock) {
      const key = await created(store, clock, { rateLimits: named({ a: strict(10), b: strict(10), c: strict(10) }) });
      await setLimits(store, key, { renamed: strict(10), b: local(4) });
      expect(await Promise.all(["a", "c"].map((name) => isMissing(store, key, name)))).toEqual([true, true]);
      expect(await wanted(store, key, "renamed", 20)).toMatchObject({ granted: 10, gen: 1 });
      expect(await wanted(store, key, "b", 20)).toMatchObject({ granted: 4, limit: 4 });
      await setLimits(store, key, null);
      for (const name of ["renamed", "b"]) expect(await isMissing(store, key, name)).toBe(true);
    },
  },
  {
    name: "limits with and without a name change alone, together, and not at all with another version",
    async run(store, clock) {
      const rateLimits = named({ a: strict(2) });
      const key = await created(store, clock, { rateLimit: strict(10), rateLimits });
      const other = await created(store, clock, { rateLimit: strict(10), rateLimits });
      await setRateLimit(store.management, key.id, strict(3));
      expect(await wanted(store, key, "a", 1)).toMatchObject({ limit: 2 });
      await setLimits(store, key, { a: strict(4), b: strict(5) });
      expect(await ask(store, key, { waiting: ones(1) })).toMatchObject({ limit: 3 });
      await update(store, key, { rateLimit: strict(6), rateLimits: named({ a: strict(7) }) });
      expect(await ask(store, key, { waiting: ones(1) })).toMatchObject({ limit: 6 });
      expect(await wanted(store, key, "a", 1)).toMatchObject({ limit: 7 });
      const refused = await update(store, key, { rateLimit: null, rateLimits: named({ c: strict(1) }) }, 1);
      expect(refused).toMatchObject({ outcome: "conflict" });
      expect(await ask(store, key, { waiting: ones(1) })).toMatchObject({ limit: 6 });
      expect(await wanted(store, key, "a", 1)).toMatchObject({ limit: 7 });
      expect(await isMissing(store, key, "c")).toBe(true);
      expect(await wanted(store, other, "a", 1)).toMatchObject({ limit: 2 });
    },
  },
  {
    name: "a new secret changes no limit and no window",
    async run(store, clock) {
      const key = await created(store, clock, { rateLimits: named({ a: strict(2) }), costMax: 5 });
      await wanted(store, key, "a", 2);
      await rerollKey(store.management, key.id, { secretDigest: "rerolled" });
      expect(await store.keys.findByDigest("rerolled")).toEqual(foundAs(key));
      expect(await wanted(store, key, "a", 1)).toMatchObject({ granted: 0, gen: 1 });
    },
  },
  {
    name: "a deleted key leaves no window, not even of limits that it had once; windows of other keys stay",
    async run(store, clock) {
      // Ids of which one begins with another.
      const ids = ["key_1", "key_10", "key_1.", "key_"];
      const rateLimits = named({ a: strict(3), b: strict(3) });
      const keys = ids.map((id) => sampleKey(clock, { id, apiId: "api", rateLimit: strict(3), rateLimits }));
      const [key, ...others] = keys as [NewKey, ...NewKey[]];
      for (const each of keys) {
        await createKey(store.management, each);
        await Promise.all([
          wanted(store, each, "a", 3),
          wanted(store, each, "b", 3),
          ask(store, each, { waiting: ones(3) }),
        ]);
        await setLimits(store, each, { b: strict(3) });
      }
      await deleteKey(store.management, key.id);
      expect(await isMissing(store, key, "b")).toBe(true);
      for (const each of others) {
        await setLimits(store, each, { a: strict(3), b: strict(3) });
        for (const name of ["a", "b"]) expect(await wanted(store, each, name, 1)).toMatchObject({ granted: 0, gen: 1 });
      }
      // The same id again: a row that was left would still be used up.
      await createKey(store.management, { ...key, secretDigest: "again" });
      for (const name of ["a", "b"]) expect(await wanted(store, key, name, 3)).toMatchObject({ granted: 3, gen: 1 });
      expect(await ask(store, key, { waiting: ones(3) })).toMatchObject({ granted: 3, gen: 1 });
      await stopApi(store.management, "api");
      expect(await deleteApiKeys(store.management, "api", 3)).toMatchObject({ changed: { length: 3 } });
      const left = await Promise.all(keys.map((each) => isMissing(store, each, "b")));
      // In the order of their ids, `key_10` is the last.
      expect(left).toEqual([true, false, true, true]);
    },
  },
  {
    name: "an id that is the subject of a limit is no key: nothing is deleted or changed by it",
    async run(store, clock) {
      const key = await created(store, clock, { rateLimits: named({ a: strict(3) }) });
      const subject = limitOfKey(key.id, "a");
      for (const id of [subject, `${key.id}/`, key.id.slice(0, 3)]) {
        expect(await deleteKey(store.management, id)).toBeUndefined();
        expect(await setRateLimit(store.management, id, strict(1))).toBeUndefined();
        expect(await setLimits(store, { ...key, id }, null)).toEqual({ outcome: "missing" });
      }
      expect(await ask(store, { id: subject }, { waiting: ones(9) })).toMatchObject({ granted: 3, limit: 3 });
    },
  },
];
