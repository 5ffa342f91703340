import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type CostRun, fitting, grantRuns } from "../../src/domain/cost-runs.ts";
import { newCounter, remainingMax, settle, type UsageCounter } from "../../src/domain/usage.ts";

const anyCost = fc.oneof(fc.integer({ min: 1, max: 20 }), fc.constantFrom(1, remainingMax - 1, remainingMax));
const anyRuns = fc.array(
  fc.record({ cost: anyCost, count: fc.oneof(fc.nat(8), fc.constantFrom(1_000_000, remainingMax)) }),
  { maxLength: 20 },
);
const anyBalance = fc.oneof(fc.nat(200), fc.constantFrom(remainingMax - 1, remainingMax));

/** The rule, caller by caller: one that fits is granted, one that does not is passed over. */
function oneByOne(available: number, runs: readonly CostRun[]): number[] {
  let left = available;
  return runs.map(({ cost, count }) => {
    let granted = 0;
    for (let i = 0; i < count && cost <= left; i++) {
      left -= cost;
      granted++;
    }
    return granted;
  });
}

describe("runs of waiting costs", () => {
  it.each<[available: number, runs: [cost: number, count: number][], granted: number[]]>([
    [10, [[4, 3]], [2]],
    [
      10,
      [
        [4, 3],
        [3, 1],
        [2, 5],
      ],
      [2, 0, 1],
    ],
    [
      5,
      [
        [6, 1],
        [5, 1],
        [1, 1],
      ],
      [0, 1, 0],
    ],
    [0, [[1, 9]], [0]],
    [remainingMax, [[remainingMax, remainingMax]], [1]],
    [7, [], []],
  ])("out of %i for %j grant %j", (available, runs, granted) => {
    expect(
      grantRuns(
        available,
        runs.map(([cost, count]) => ({ cost, count })),
      ),
    ).toEqual(granted);
  });

  it("are granted what their callers would be granted one by one", () => {
    const few = fc.array(fc.record({ cost: fc.integer({ min: 1, max: 9 }), count: fc.nat(9) }), { maxLength: 20 });
    fc.assert(
      fc.property(fc.nat(200), few, (available, runs) => {
        expect(grantRuns(available, runs)).toEqual(oneByOne(available, runs));
      }),
    );
  });

  it("are never granted more than there is, and refused only what does not fit", () => {
    fc.assert(
      fc.property(anyBalance, anyRuns, (available, runs) => {
        let left = available;
        grantRuns(available, runs).forEach((granted, i) => {
          const { cost, count } = runs[i] as CostRun;
          expect(granted).toBeGreaterThanOrEqual(0);
          left -= granted * cost;
          expect(left).toBeGreaterThanOrEqual(0);
          if (granted < count) expect(cost).toBeGreaterThan(left);
        });
      }),
    );
  });

  it("come to the same when a run is cut in two", () => {
    fc.assert(
      fc.property(anyBalance, anyRuns, (available, runs) => {
        const halves = runs.flatMap(({ cost, count }) => [
          { cost, count: Math.floor(count / 2) },
          { cost, count: Math.ceil(count / 2) },
        ]);
        const granted = grantRuns(available, halves);
        const merged = runs.map((_, i) => (granted[2 * i] as number) + (granted[2 * i + 1] as number));
        expect(merged).toEqual(grantRuns(available, runs));
      }),
    );
  });
});

describe("a charge on two counters", () => {
  const noon = Date.parse("2026-01-15T12:00:00.000Z");

  it("takes the same from both, as much as the one that has less can pay, and leaves nothing of what it refuses", () => {
    fc.assert(
      fc.property(anyBalance, anyBalance, anyRuns, (own, shared, runs) => {
        let counters: [UsageCounter, UsageCounter] = [
          newCounter(own, undefined, noon),
          newCounter(shared, undefined, noon),
        ];
        for (const run of runs) {
          const [before, sharedBefore] = counters;
          const settled = settle(before, run, noon, sharedBefore);
          counters = [settled.counter, settled.shared as UsageCounter];
          const taken = settled.granted * run.cost;
          expect(settled.granted).toBe(fitting(Math.min(before.remaining, sharedBefore.remaining), run));
          expect(counters.map(({ remaining }) => remaining)).toEqual([
            before.remaining - taken,
            sharedBefore.remaining - taken,
          ]);
          // Not written if nothing has changed.
          if (taken === 0) expect([settled.counter === before, settled.shared === sharedBefore]).toEqual([true, true]);
        }
      }),
    );
  });

  it("with a shared counter that is full is a charge on one", () => {
    fc.assert(
      fc.property(fc.nat(1000), anyRuns, (own, runs) => {
        let alone = newCounter(own, undefined, noon);
        let beside = alone;
        for (const run of runs) {
          const one = settle(alone, run, noon);
          const two = settle(beside, run, noon, newCounter(remainingMax, undefined, noon));
          expect([two.granted, two.counter]).toEqual([one.granted, one.counter]);
          expect(one.shared).toBeUndefined();
          [alone, beside] = [one.counter, two.counter];
        }
      }),
    );
  });
});
