import { expect } from "vitest";
import { askRunsMax } from "../../src/domain/permit-window.ts";
import { limitMax } from "../../src/domain/rate-limit.ts";
import { ones } from "../support/ones.ts";
import type { ContractCase } from "./contract-case.ts";
import { ask, createdStrict, permitAsk, windowMs } from "./permit-asks.ts";
import { exchange } from "./settle.ts";

/** So many requests for each of these costs, in order. */
function runs(...costs: readonly (readonly [cost: number, count: number])[]) {
  return costs.map(([cost, count]) => ({ cost, count }));
}

/** What the permit ledger promises for requests that cost more than one permit. */
export const permitCostCases: readonly ContractCase[] = [
  {
    name: "a cost is granted as a whole or not at all, and one that does not fit leaves what is there",
    async run(store, clock) {
      const key = await createdStrict(store, clock, 10);
      expect(await ask(store, key, { waiting: runs([5, 1]) })).toMatchObject({ gen: 1, granted: 5, left: 5 });
      expect(await ask(store, key, { waiting: runs([6, 1]) })).toMatchObject({ granted: 0, left: 5, outstanding: 5 });
      expect(await ask(store, key, { waiting: runs([5, 1]) })).toMatchObject({ granted: 5, left: 0, contended: true });
    },
  },
  {
    name: "costs are granted in order of arrival, and one that does not fit does not hold up a smaller one behind it",
    async run(store, clock) {
      const cases = [
        [runs([3, 2], [5, 1], [2, 2]), 10],
        [runs([7, 1], [4, 1], [3, 1], [1, 5]), 10],
        [runs([4, 5]), 8],
        [runs([4, 5], [1, 1]), 9],
        [runs([1, 4], [7, 1], [6, 1]), 10],
        [runs([9, 1], [2, 3], [1, 3]), 10],
        [runs([11, 1], [3, 4]), 9],
      ] as const;
      for (const [waiting, granted] of cases) {
        const key = await createdStrict(store, clock, 10);
        expect(await ask(store, key, { waiting })).toMatchObject({ gen: 1, granted, left: 10 - granted });
      }
    },
  },
  {
    name: "nothing is granted in advance while a cost waits in vain, and no more in all than without costs",
    async run(store, clock) {
      const key = await createdStrict(store, clock, 100);
      const first = await ask(store, key, { waiting: runs([20, 1], [5, 2]), inAdvance: 100 });
      expect(first).toMatchObject({ granted: 50, left: 50, contended: false });
      const inVain = await ask(store, key, { waiting: runs([51, 1], [3, 1]), inAdvance: 10 });
      expect(inVain).toMatchObject({ granted: 3, left: 47, contended: false });
      expect(await ask(store, key, { waiting: runs([7, 1]), inAdvance: 4 })).toMatchObject({ granted: 11, left: 36 });
      const many = await ask(store, key, { waiting: runs([30, 1]), inAdvance: 9, holders: 3 });
      expect(many).toMatchObject({ granted: 30, left: 6, contended: false });
      expect(await ask(store, key, { waiting: runs([2, 1]), inAdvance: 9, holders: 4 })).toMatchObject({
        granted: 2,
        left: 4,
        contended: true,
      });
    },
  },
  {
    name: "returned permits complete a cost of the ask that returns them",
    async run(store, clock) {
      const key = await createdStrict(store, clock, 10);
      await ask(store, key, { waiting: ones(8) });
      expect(await ask(store, key, { waiting: runs([5, 1]), gen: 1, returned: 2 })).toMatchObject({
        granted: 0,
        left: 4,
      });
      expect(await ask(store, key, { waiting: runs([5, 1]), gen: 1, returned: 1 })).toMatchObject({
        granted: 5,
        left: 0,
      });
    },
  },
  {
    name: "a cost above the limit opens no window, unless a smaller one waits too",
    async run(store, clock) {
      const key = await createdStrict(store, clock, 10);
      for (const waiting of [runs([11, 1]), runs([limitMax, 3], [12, 2])])
        expect(await ask(store, key, { waiting, inAdvance: 5 })).toMatchObject({
          gen: 0,
          granted: 0,
          endsInMs: 0,
          limit: 10,
        });
      expect(await ask(store, key, { waiting: runs([11, 1], [10, 1]) })).toMatchObject({
        gen: 1,
        granted: 10,
        left: 0,
      });
      clock.advance(windowMs);
      expect(await ask(store, key, { waiting: runs([11, 1]) })).toMatchObject({ gen: 1, granted: 0, endsInMs: 0 });
    },
  },
  {
    name: "runs without requests and costs below 1 count for nothing",
    async run(store, clock) {
      const key = await createdStrict(store, clock, 10);
      const nothing = runs([0, 5], [-3, 2], [4, 0], [4, -1]);
      expect(await ask(store, key, { waiting: nothing, inAdvance: 5 })).toMatchObject({ gen: 0, granted: 0 });
      expect(await ask(store, key, { waiting: [...nothing, ...runs([4, 1])] })).toMatchObject({ gen: 1, granted: 4 });
      expect(await ask(store, key, { waiting: nothing, inAdvance: 2 })).toMatchObject({ granted: 2, left: 4 });
    },
  },
  {
    name: "the largest costs and counts are granted exactly, in as many runs as an ask may have",
    async run(store, clock) {
      const key = await createdStrict(store, clock, limitMax);
      const most = runs(...Array.from({ length: askRunsMax }, () => [limitMax, limitMax] as const));
      expect(await ask(store, key, { waiting: most, inAdvance: limitMax })).toMatchObject({
        granted: limitMax,
        left: 0,
      });
      expect(await ask(store, key, { waiting: most, gen: 1, returned: 7 })).toMatchObject({ granted: 0, left: 7 });
      const mixed = runs(...Array.from({ length: askRunsMax }, (_, i) => [askRunsMax - i, 1] as const));
      expect(await ask(store, key, { waiting: mixed })).toMatchObject({ granted: 7, left: 0 });
    },
  },
  {
    name: "subjects with costs and without are settled in one call, each by its own runs",
    async run(store, clock) {
      const keys = await Promise.all(Array.from({ length: 20 }, (_, i) => createdStrict(store, clock, 10 + i)));
      const asks = keys.map(({ id }, i) => {
        const waiting = [ones(i), runs([4, 1 + (i % 4)], [3, 2]), []][i % 3];
        return { subject: id, ...permitAsk({ waiting: waiting as { cost: number; count: number }[] }) };
      });
      const missing = { subject: "unknown", ...permitAsk({ waiting: runs([2, 3], [1, 1]) }) };
      const granted = [0, 11, 0, 3, 10, 0, 6, 16, 0, 9, 18, 0, 12, 14, 0, 15, 10, 0, 18, 22];
      expect(await exchange(store, [missing, ...asks])).toMatchObject([
        { outcome: "missing" },
        ...granted.map((units) => ({ outcome: "settled", granted: units })),
      ]);
    },
  },
];
