import { expect } from "vitest";
import type { NewKey } from "../../src/domain/key.ts";
import { remainingMax } from "../../src/domain/usage.ts";
import type { Store } from "../../src/store/store.ts";
import type { ChargeResult } from "../../src/store/usage-ledger.ts";
import { createKey, createKeys } from "../support/manage.ts";
import type { TestClock } from "../support/test-clock.ts";
import type { ContractCase } from "./contract-case.ts";
import { sampleKey } from "./sample-keys.ts";
import { settle } from "./settle.ts";

export const usageCases: readonly ContractCase[] = [
  {
    name: "with N left exactly N uses are granted, counting down to 0",
    async run(store, clock) {
      const key = await created(store, clock, { remaining: 3 });
      const answers = [];
      for (let use = 0; use < 5; use++) answers.push(await charge(store, key, 1));
      expect(answers).toEqual([settled(1, 2), settled(1, 1), settled(1, 0), settled(0, 0), settled(0, 0)]);
    },
  },
  {
    name: "more uses than there are get what there is",
    async run(store, clock) {
      const key = await created(store, clock, { remaining: 7 });
      expect(await charge(store, key, 5)).toEqual(settled(5, 2));
      expect(await charge(store, key, 5)).toEqual(settled(2, 0));
    },
  },
  {
    name: "a counter at its bound counts down exactly",
    async run(store, clock) {
      const key = await created(store, clock, { remaining: remainingMax });
      expect(await charge(store, key, 1)).toEqual(settled(1, 2_147_483_646));
      expect(await charge(store, key, 2_147_483_645)).toEqual(settled(2_147_483_645, 1));
    },
  },
  {
    name: "unknown keys and keys without a counter are missing, and disturb no other key of the call",
    async run(store, clock) {
      const good = await created(store, clock, { remaining: 4 });
      const uncounted = await created(store, clock);
      const other = await created(store, clock, { remaining: 1 });
      const wanted = ["unknown", good.id, uncounted.id, "", other.id].map((keyId) => ({
        subject: keyId,
        cost: 1,
        count: 2,
      }));
      expect(await settle(store, wanted)).toEqual([
        { outcome: "missing" },
        settled(2, 2),
        { outcome: "missing" },
        { outcome: "missing" },
        settled(1, 0),
      ]);
    },
  },
  {
    name: "a call for nothing answers nothing",
    async run(store) {
      expect(await settle(store, [])).toEqual([]);
    },
  },
  {
    name: "500 keys in one call each get their own answer, in the order asked for",
    async run(store, clock) {
      const keys = Array.from({ length: 500 }, (_, i) => sampleKey(clock, { remaining: i }));
      await createKeys(store.management, keys);
      const shuffled = keys.map((_, i) => keys[(i * 7) % 500] as NewKey);
      const answers = await settle(
        store,
        shuffled.map(({ id }) => ({ subject: id, cost: 1, count: 10 })),
      );
      const expected = shuffled.map(({ remaining = 0 }) =>
        settled(Math.min(10, remaining), Math.max(0, remaining - 10)),
      );
      expect(answers).toEqual(expected);
    },
  },
  {
    name: "500 calls for one key at once are granted exactly what there is, each balance once",
    async run(store, clock) {
      const key = await created(store, clock, { remaining: 300 });
      const answers = await Promise.all(Array.from({ length: 500 }, () => charge(store, key, 1)));
      const granted = answers.filter((answer) => answer.outcome === "settled" && answer.granted === 1);
      const balances = granted.map((answer) => (answer.outcome === "settled" ? answer.remaining : -1));
      expect(balances.sort((a, b) => a - b)).toEqual(Array.from({ length: 300 }, (_, i) => i));
      expect(await charge(store, key, 1)).toEqual(settled(0, 0));
    },
  },
  {
    name: "a look-up shows the balance that the last settled use left",
    async run(store, clock) {
      const key = await created(store, clock, { remaining: 5 });
      expect(await store.keys.findByDigest(key.secretDigest)).toMatchObject({ counter: { remaining: 5 } });
      await charge(store, key, 2);
      expect(await store.keys.findByDigest(key.secretDigest)).toMatchObject({ counter: { remaining: 3 } });
    },
  },
];

/** A key that is in the store. */
export async function created(store: Store, clock: TestClock, given: Partial<NewKey> = {}): Promise<NewKey> {
  const key = sampleKey(clock, given);
  await createKey(store.management, key);
  return key;
}

export async function charge(store: Store, key: Pick<NewKey, "id">, wanted: number): Promise<ChargeResult> {
  const results = await settle(store, [{ subject: key.id, cost: 1, count: wanted }]);
  expect(results).toHaveLength(1);
  return results[0] as ChargeResult;
}

export function settled(granted: number, remaining: number): ChargeResult {
  return { outcome: "settled", granted, remaining };
}
