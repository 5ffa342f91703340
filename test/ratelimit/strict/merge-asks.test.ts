import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { CostRun } from "../../../src/domain/cost-runs.ts";
import { askRunsMax, exchangePermits, neverOpened, type PermitAsk } from "../../../src/domain/permit-window.ts";
import { boundRuns, mergeAsks, shareOut } from "../../../src/ratelimit/coordinator/merge-asks.ts";
import { ones } from "../../support/ones.ts";
import { askFor, wantedBy } from "./asks.ts";

const sum = (numbers: readonly number[]) => numbers.reduce((total, each) => total + each, 0);
const sharesOf = (asks: readonly PermitAsk[], granted: number) => shareOut(asks, granted).map((share) => share.granted);

const count = fc.integer({ min: 0, max: 1000 });
const anyWaiting: fc.Arbitrary<CostRun[]> = fc.oneof(
  count.map(ones),
  fc.array(fc.record({ cost: fc.integer({ min: 1, max: 20 }), count: fc.integer({ min: 1, max: 5 }) }), {
    maxLength: 5,
  }),
);
const anyAsk: fc.Arbitrary<PermitAsk> = fc
  .record({
    waiting: anyWaiting,
    inAdvance: count,
    gen: fc.integer({ min: 0, max: 3 }),
    returned: count,
    spent: count,
  })
  .map(askFor);
const anyAsks = fc.array(anyAsk, { minLength: 1, maxLength: 8 });

describe("mergeAsks", () => {
  it("leaves a single ask as it is, but for how many share the key", () => {
    const ask = askFor({ waiting: ones(2), inAdvance: 7, gen: 4, returned: 1, spent: 3 });
    expect(mergeAsks([ask], 5)).toEqual({ ...ask, holders: 5 });
  });

  it("wants the sum of what all want", () => {
    const asks = [askFor({ waiting: ones(1), inAdvance: 4 }), askFor({ inAdvance: 7 }), askFor({ waiting: ones(4) })];
    expect(mergeAsks(asks, 3)).toEqual(askFor({ waiting: ones(5), inAdvance: 11, holders: 3 }));
  });

  it("keeps the order of costs, and makes one run of equal neighbours", () => {
    const [two, five] = [
      { cost: 2, count: 3 },
      { cost: 5, count: 1 },
    ];
    const asks = [askFor({ waiting: [two, five] }), askFor({ waiting: [five, two] }), askFor({ waiting: [two] })];
    expect(mergeAsks(asks, 3).waiting).toEqual([two, { cost: 5, count: 2 }, { cost: 2, count: 6 }]);
  });

  it("drops returns and reports for a window that is over, but not what is wanted", () => {
    const asks = [
      askFor({ gen: 6, waiting: ones(1), inAdvance: 2, returned: 50, spent: 60 }),
      askFor({ gen: 7, returned: 2, spent: 3 }),
      askFor({ gen: 7, waiting: ones(1), returned: 4, spent: 5 }),
    ];
    const merged = { gen: 7, waiting: ones(2), inAdvance: 2, returned: 6, spent: 8, holders: 3 };
    expect(mergeAsks(asks, 3)).toEqual(askFor(merged));
  });

  it("never returns or reports more than the asks of the newest window did, in any order", () => {
    fc.assert(
      fc.property(anyAsks, (asks) => {
        const merged = mergeAsks(asks, asks.length);
        const newest = asks.filter(({ gen }) => gen === merged.gen);
        expect(Math.max(...asks.map(({ gen }) => gen))).toBe(merged.gen);
        for (const field of ["returned", "spent"] as const) {
          expect(merged[field]).toBe(sum(newest.map((ask) => ask[field])));
        }
        expect(merged.inAdvance).toBe(sum(asks.map(({ inAdvance }) => inAdvance)));
        expect(wantedBy(merged)).toBe(sum(asks.map(wantedBy)));
        const { waiting: _, ...reversed } = mergeAsks([...asks].reverse(), asks.length);
        expect(merged).toMatchObject(reversed);
      }),
    );
  });
});

describe("boundRuns", () => {
  const runs = (length: number): CostRun[] => Array.from({ length }, (_, i) => ({ cost: 1 + (i % 2), count: 1 }));

  it.each([
    ["leaves few runs as they are", [60, 40], [60, 40]],
    ["gives each ask its part of the places", [100, 100], [50, 50]],
    ["gives places that one does not need to the others", [100, 2, 100], [49, 2, 49]],
    ["serves some of very many asks", Array(150).fill(1), [...Array(100).fill(1), ...Array(50).fill(0)]],
  ])("%s", (_, lengths: number[], kept: number[]) => {
    const asks = lengths.map((length) => askFor({ waiting: runs(length), inAdvance: 3, returned: 1 }));
    const bound = boundRuns(asks);
    expect(bound).toEqual(kept.map((length) => askFor({ waiting: runs(length), inAdvance: 3, returned: 1 })));
    expect(mergeAsks(bound, 1).waiting.length).toBeLessThanOrEqual(askRunsMax);
  });
});

describe("shareOut", () => {
  it.each([
    ["everything to the only one", [[3, 2]], 5, [5]],
    [
      "nothing when nothing was granted",
      [
        [3, 2],
        [1, 0],
      ],
      0,
      [0, 0],
    ],
    [
      "to asks with waiting requests first, in order",
      [
        [2, 7],
        [0, 9],
        [3, 6],
      ],
      4,
      [2, 0, 2],
    ],
    [
      "the rest evenly",
      [
        [1, 8],
        [0, 9],
        [2, 7],
      ],
      9,
      [3, 2, 4],
    ],
    [
      "an odd rest to the first",
      [
        [0, 9],
        [0, 9],
        [0, 9],
      ],
      7,
      [3, 2, 2],
    ],
    [
      "what one does not want to the others",
      [
        [0, 1],
        [0, 9],
        [0, 2],
      ],
      9,
      [1, 6, 2],
    ],
    [
      "nothing to an ask that only returns",
      [
        [0, 0],
        [1, 3],
      ],
      3,
      [0, 3],
    ],
  ])("gives %s", (_, wants, granted, shares) => {
    const asks = wants.map(([waiting = 0, inAdvance = 0]) => askFor({ waiting: ones(waiting), inAdvance }));
    expect(sharesOf(asks, granted)).toEqual(shares);
  });

  it("gives whole costs, and tells the smallest of each ask that was not granted", () => {
    const asks = [
      askFor({
        waiting: [
          { cost: 5, count: 1 },
          { cost: 8, count: 1 },
        ],
      }),
      askFor({
        waiting: [
          { cost: 9, count: 1 },
          { cost: 7, count: 1 },
        ],
      }),
      askFor({ waiting: [{ cost: 2, count: 3 }] }),
    ];
    expect(shareOut(asks, 9)).toEqual([
      { granted: 5, lacking: 8 },
      { granted: 0, lacking: 7 },
      { granted: 4, lacking: 2 },
    ]);
  });

  it("hands out exactly what the ledger has granted, whole costs to each ask, in advance only if none waits in vain", () => {
    fc.assert(
      fc.property(anyAsks, fc.integer({ min: 1, max: 900 }), fc.nat(900), (asks, limit, used) => {
        const merged = { ...mergeAsks(asks, asks.length), gen: 0 };
        const open = { ...neverOpened, gen: 1, endsAtMs: 1000, durationMs: 1000, granted: Math.min(limit, used) };
        const { grant } = exchangePermits(open, merged, { limit, durationMs: 1000 }, 0);
        const shares = shareOut(asks, grant.granted);
        expect(sum(shares.map(({ granted }) => granted))).toBe(grant.granted);
        const isEachServed = shares.every(({ lacking }) => lacking === undefined);
        shares.forEach(({ granted, lacking }, i) => {
          const ask = asks[i] as PermitAsk;
          // What is left over completes no cost of any ask.
          if (lacking !== undefined) expect(lacking).toBeGreaterThan(grant.left);
          if (isEachServed) expect(granted - wantedBy(ask)).toBeGreaterThanOrEqual(0);
          expect(granted).toBeLessThanOrEqual(wantedBy(ask) + ask.inAdvance);
          if (!isEachServed) expect(isSumOfCosts(granted, ask.waiting)).toBe(true);
        });
      }),
    );
  });

  it("hands out no more than was granted, whatever that is", () => {
    fc.assert(
      fc.property(anyAsks, fc.integer({ min: 0, max: 20_000 }), (asks, granted) => {
        expect(sum(sharesOf(asks, granted))).toBeLessThanOrEqual(granted);
      }),
    );
  });
});

/** Whether some of the requests want exactly so much together. */
function isSumOfCosts(units: number, waiting: readonly CostRun[]): boolean {
  const [first, ...others] = waiting;
  if (first === undefined || units === 0) return units === 0;
  for (let served = 0; served <= first.count && served * first.cost <= units; served++) {
    if (isSumOfCosts(units - served * first.cost, others)) return true;
  }
  return false;
}
