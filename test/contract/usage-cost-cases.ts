import { expect } from "vitest";
import { remainingMax } from "../../src/domain/usage.ts";
import type { Store } from "../../src/store/store.ts";
import type { Charge, ChargeResult } from "../../src/store/usage-ledger.ts";
import type { TestClock } from "../support/test-clock.ts";
import type { ContractCase } from "./contract-case.ts";
import { settleInOrder } from "./settle.ts";
import { created, settled } from "./usage-cases.ts";

const noon = Date.parse("2026-01-15T12:00:00.000Z");
const nextMidnight = Date.parse("2026-01-16T00:00:00.000Z");

/** Costs, and charges on two counters: a key's own and one that it shares. Here any two keys' counters. */
export const usageCostCases: readonly ContractCase[] = [
  {
    name: "a cost is taken whole or not at all",
    async run(store, clock) {
      const key = await counter(store, clock, 5);
      expect(await settleAll(store, run(key, 6))).toEqual([settled(0, 5)]);
      expect(await settleAll(store, run(key, 2, 3))).toEqual([settled(2, 1)]);
      expect(await settleAll(store, run(key, 1))).toEqual([settled(1, 0)]);
    },
  },
  {
    name: "costs are granted in order, and one that does not fit does not hold up a smaller one behind it",
    async run(store, clock) {
      const key = await counter(store, clock, 10);
      const answers = await settleAll(store, run(key, 4, 3), run(key, 3, 2), run(key, 1), run(key, 2), run(key, 1, 2));
      expect(answers).toEqual([settled(2, 2), settled(0, 2), settled(1, 1), settled(0, 1), settled(1, 0)]);
    },
  },
  {
    name: "the greatest costs and numbers of callers are counted exactly",
    async run(store, clock) {
      const key = await counter(store, clock, remainingMax);
      expect(await settleAll(store, run(key, remainingMax - 2, 1_000_000), run(key, 3))).toEqual([
        settled(1, 2),
        settled(0, 2),
      ]);
      const other = await counter(store, clock, remainingMax);
      const half = (remainingMax - 1) / 2;
      const greatest = Array.from({ length: 20 }, () => run(other, remainingMax, remainingMax));
      expect(await settleAll(store, run(other, 2, remainingMax), ...greatest)).toEqual([
        settled(half, 1),
        ...greatest.map(() => settled(0, 1)),
      ]);
    },
  },
  {
    name: "a charge on two counters takes the same from both, as long as both can pay",
    async run(store, clock) {
      const [key, owner] = [await counter(store, clock, 20), await counter(store, clock, 11)];
      expect(await settleAll(store, both(key, owner, 4))).toEqual([settledBoth(1, 16, 7)]);
      expect(await settleAll(store, both(key, owner, 3, 5))).toEqual([settledBoth(2, 10, 1)]);
      expect(await settleAll(store, run(key, 1), run(owner, 1))).toEqual([settled(1, 9), settled(1, 0)]);
    },
  },
  {
    name: "a charge on two counters takes nothing if the first cannot pay",
    async run(store, clock) {
      const [key, owner] = [await counter(store, clock, 2), await counter(store, clock, 9)];
      expect(await settleAll(store, both(key, owner, 3))).toEqual([settledBoth(0, 2, 9)]);
      expect(await balances(store, key, owner)).toEqual([2, 9]);
    },
  },
  {
    name: "a charge on two counters takes nothing if the second cannot pay",
    async run(store, clock) {
      const [key, owner] = [await counter(store, clock, 9), await counter(store, clock, 2)];
      expect(await settleAll(store, both(key, owner, 3))).toEqual([settledBoth(0, 9, 2)]);
      expect(await balances(store, key, owner)).toEqual([9, 2]);
    },
  },
  {
    name: "a charge on two counters is missing if one of them is, and takes nothing from the other",
    async run(store, clock) {
      const [key, owner] = [await counter(store, clock, 9), await counter(store, clock, 9)];
      const answers = await settleAll(store, both("none", owner, 3), both(key, owner, 1), both(key, "none", 3));
      expect(answers).toEqual([{ outcome: "missing" }, settledBoth(1, 8, 8), { outcome: "missing" }]);
      expect(await balances(store, key, owner)).toEqual([8, 8]);
    },
  },
  {
    name: "charges of one call are settled in order, whichever counters they share",
    async run(store, clock) {
      const [k1, k2, owner] = [
        await counter(store, clock, 5),
        await counter(store, clock, 9),
        await counter(store, clock, 10),
      ];
      const answers = await settleAll(
        store,
        both(k1, owner, 4),
        both(k2, owner, 7),
        run(k1, 1),
        both(k2, owner, 5),
        both(k1, owner, 1),
        run(k2, 4),
        run(owner, 1, 2),
      );
      expect(answers).toEqual([
        settledBoth(1, 1, 6),
        settledBoth(0, 9, 6),
        settled(1, 0),
        settledBoth(1, 4, 1),
        settledBoth(0, 0, 1),
        settled(1, 0),
        settled(1, 0),
      ]);
    },
  },
  {
    name: "refills that are due come before a charge on two counters, each by its own rule",
    async run(store, clock) {
      clock.stepTo(noon);
      const daily = { interval: "daily", amount: 5 } as const;
      const key = await counter(store, clock, 1, { ...daily, carryOver: true });
      const owner = await counter(store, clock, 1, { ...daily, carryOver: false });
      clock.stepTo(nextMidnight);
      expect(await settleAll(store, both(key, owner, 6), both(key, owner, 5))).toEqual([
        settledBoth(0, 6, 5),
        settledBoth(1, 1, 0),
      ]);
      clock.stepTo(noon);
      const early = { refilledAheadMs: nextMidnight - noon };
      expect(await settleAll(store, both(key, owner, 1))).toEqual([{ ...settledBoth(0, 1, 0), ...early }]);
    },
  },
  {
    name: "a charge on two counters of which one is missing stores no refill of the other",
    async run(store, clock) {
      clock.stepTo(noon);
      const key = await counter(store, clock, 0, { interval: "daily", amount: 1, carryOver: false });
      clock.stepTo(nextMidnight);
      expect(await settleAll(store, both(key, "none", 1), both("none", key, 1))).toEqual([
        { outcome: "missing" },
        { outcome: "missing" },
      ]);
      // By the clock that was set back, nothing is due yet.
      clock.stepTo(noon);
      expect(await balances(store, key)).toEqual([0]);
    },
  },
  {
    name: "100 keys that share a counter are charged in one call until that one is used up",
    async run(store, clock) {
      const owner = await counter(store, clock, 500);
      const keys: string[] = [];
      // One after the other: on a busy machine so many at a time would wait too long for a connection.
      while (keys.length < 100) keys.push(await counter(store, clock, 15));
      const costs = keys.map((_, i) => 1 + ((i * 7) % 20));
      const answers = await settleAll(store, ...keys.map((key, i) => both(key, owner, costs[i] as number)));
      let left = 500;
      const expected = costs.map((cost) => {
        const granted = Number(cost <= 15 && cost <= left);
        left -= granted * cost;
        return settledBoth(granted, 15 - granted * cost, left);
      });
      expect(answers).toEqual(expected);
      expect(left).toBeLessThan(15);
      expect(await balances(store, owner)).toEqual([left]);
    },
  },
];

/** The id of a new key with this balance. */
async function counter(
  store: Store,
  clock: TestClock,
  remaining: number,
  refill?: { interval: "daily"; amount: number; carryOver: boolean },
): Promise<string> {
  return (await created(store, clock, { remaining, refill })).id;
}

const settleAll = (store: Store, ...charges: Charge[]) => settleInOrder(store, charges);

async function balances(store: Store, ...subjects: string[]): Promise<unknown[]> {
  const asked = subjects.map((subject) => ({ subject, cost: 1, count: 0 }));
  return (await settleInOrder(store, asked)).map((result) =>
    result.outcome === "settled" ? result.remaining : result,
  );
}

function run(subject: string, cost: number, count = 1): Charge {
  return { subject, cost, count };
}

function both(subject: string, shared: string, cost: number, count = 1): Charge {
  return { subject, shared, cost, count };
}

function settledBoth(granted: number, remaining: number, sharedRemaining: number): ChargeResult {
  return { outcome: "settled", granted, remaining, sharedRemaining };
}
