import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { PermitAsk } from "../../../src/domain/permit-window.ts";
import { mergeAsks, shareOut } from "../../../src/ratelimit/coordinator/merge-asks.ts";
import { askFor } from "./asks.ts";

const sum = (numbers: readonly number[]) => numbers.reduce((total, each) => total + each, 0);

const count = fc.integer({ min: 0, max: 1000 });
const anyAsk: fc.Arbitrary<PermitAsk> = fc
  .record({ wantMin: count, more: count, gen: fc.integer({ min: 0, max: 3 }), returned: count, spent: count })
  .map(({ more, ...ask }) => askFor({ ...ask, wantMax: ask.wantMin + more }));
const anyAsks = fc.array(anyAsk, { minLength: 1, maxLength: 8 });

describe("mergeAsks", () => {
  it("leaves a single ask as it is, but for how many share the key", () => {
    const ask = askFor({ wantMin: 2, wantMax: 9, gen: 4, returned: 1, spent: 3 });
    expect(mergeAsks([ask], 5)).toEqual({ ...ask, holders: 5 });
  });

  it("wants the sum of what all want", () => {
    const asks = [askFor({ wantMin: 1, wantMax: 5 }), askFor({ wantMin: 0, wantMax: 7 }), askFor({ wantMin: 4 })];
    expect(mergeAsks(asks, 3)).toEqual(askFor({ wantMin: 5, wantMax: 16, holders: 3 }));
  });

  it("drops returns and reports for a window that is over, but not what is wanted", () => {
    const asks = [
      askFor({ gen: 6, wantMin: 1, wantMax: 3, returned: 50, spent: 60 }),
      askFor({ gen: 7, returned: 2, spent: 3 }),
      askFor({ gen: 7, wantMin: 1, wantMax: 1, returned: 4, spent: 5 }),
    ];
    expect(mergeAsks(asks, 3)).toEqual(askFor({ gen: 7, wantMin: 2, wantMax: 4, returned: 6, spent: 8, holders: 3 }));
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
        for (const field of ["wantMin", "wantMax"] as const) {
          expect(merged[field]).toBe(sum(asks.map((ask) => ask[field])));
        }
        expect(mergeAsks([...asks].reverse(), asks.length)).toEqual(merged);
      }),
    );
  });
});

describe("shareOut", () => {
  it.each([
    ["everything to the only one", [[3, 5]], 5, [5]],
    [
      "nothing when nothing was granted",
      [
        [3, 5],
        [1, 1],
      ],
      0,
      [0, 0],
    ],
    [
      "to asks with waiting requests first, in order",
      [
        [2, 9],
        [0, 9],
        [3, 9],
      ],
      4,
      [2, 0, 2],
    ],
    [
      "the rest evenly",
      [
        [1, 9],
        [0, 9],
        [2, 9],
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
        [1, 4],
      ],
      3,
      [0, 3],
    ],
  ])("gives %s", (_, wants, granted, shares) => {
    const asks = wants.map(([wantMin = 0, wantMax = 0]) => askFor({ wantMin, wantMax }));
    expect(shareOut(asks, granted)).toEqual(shares);
  });

  it("hands out exactly what was granted, as far as it is wanted, and to no ask more than it wants", () => {
    fc.assert(
      fc.property(anyAsks, fc.integer({ min: 0, max: 20_000 }), (asks, granted) => {
        const shares = shareOut(asks, granted);
        expect(sum(shares)).toBe(Math.min(granted, sum(asks.map(({ wantMax }) => wantMax))));
        shares.forEach((share, i) => {
          expect(share).toBeGreaterThanOrEqual(0);
          expect(share).toBeLessThanOrEqual((asks[i] as PermitAsk).wantMax);
        });
      }),
    );
  });

  it("lets no request wait while another ask gets permits in advance", () => {
    fc.assert(
      fc.property(anyAsks, fc.integer({ min: 0, max: 20_000 }), (asks, granted) => {
        const shares = shareOut(asks, granted);
        const isShort = asks.some(({ wantMin }, i) => (shares[i] as number) < wantMin);
        const tookInAdvance = asks.some(({ wantMin }, i) => (shares[i] as number) > wantMin);
        expect(isShort && tookInAdvance).toBe(false);
      }),
    );
  });
});
