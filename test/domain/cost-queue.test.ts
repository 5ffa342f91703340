import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type CostQueue,
  countOf,
  createCostQueue,
  dropFirst,
  dropLast,
  enqueue,
  firstRuns,
  type Picked,
  smallestAbove,
  smallestCost,
  takeAbove,
  takeFitting,
  unitsOf,
} from "../../src/domain/cost-queue.ts";

function queueOf(...costs: readonly number[]): CostQueue {
  const queue = createCostQueue();
  for (const cost of costs) enqueue(queue, cost);
  return queue;
}

/** What a list of the same requests does when those are picked. */
function leave(costs: readonly number[], picked: readonly Picked[]): { gone: number[]; kept: number[] } {
  const rest = [...costs];
  const gone: number[] = [];
  const kept: number[] = [];
  for (const { skip, count } of picked) {
    kept.push(...rest.splice(0, skip));
    gone.push(...rest.splice(0, count));
  }
  return { gone, kept: [...kept, ...rest] };
}

const costsOf = (queue: CostQueue) =>
  firstRuns(queue, Number.POSITIVE_INFINITY, 0).flatMap(({ cost, count }) => Array<number>(count).fill(cost));

const calls = { enqueue, takeFitting, takeAbove, dropFirst, dropLast };

describe("CostQueue", () => {
  it("makes one run of equal neighbours, also when those between them have left", () => {
    const queue = queueOf(1, 1, 5, 1, 2, 2);
    expect(firstRuns(queue, 10, 0)).toEqual([
      { cost: 1, count: 2 },
      { cost: 5, count: 1 },
      { cost: 1, count: 1 },
      { cost: 2, count: 2 },
    ]);
    expect(takeAbove(queue, 4)).toEqual([{ skip: 2, count: 1, cost: 5 }]);
    expect(firstRuns(queue, 10, 0)).toEqual([
      { cost: 1, count: 3 },
      { cost: 2, count: 2 },
    ]);
  });

  it("passes over what is out of reach if there are too many runs, and over nothing if there are not", () => {
    const queue = queueOf(9, 3, 9, 2, 9, 1);
    expect(firstRuns(queue, 6, 3).map(({ cost }) => cost)).toEqual([9, 3, 9, 2, 9, 1]);
    expect(firstRuns(queue, 2, 3).map(({ cost }) => cost)).toEqual([3, 2]);
    expect(firstRuns(queue, 2, 0).map(({ cost }) => cost)).toEqual([9, 3]);
  });

  it("does to any requests, in any order of calls, what a plain list of costs does", () => {
    const cost = fc.integer({ min: 1, max: 6 });
    const anyCall = fc.oneof(
      { weight: 4, arbitrary: fc.record({ call: fc.constant("enqueue" as const), amount: cost }) },
      fc.record({
        call: fc.constantFrom("takeFitting" as const, "takeAbove" as const, "dropFirst" as const, "dropLast" as const),
        amount: fc.nat(12),
      }),
    );
    fc.assert(
      fc.property(fc.array(anyCall, { maxLength: 60 }), (made) => {
        const queue = createCostQueue();
        let list: number[] = [];
        for (const { call, amount } of made) {
          if (call === "enqueue") list.push(amount);
          if (call === "dropFirst") list.splice(0, amount);
          if (call === "dropLast") list.pop();
          if (call === "takeFitting" || call === "takeAbove") {
            const picked = calls[call](queue, amount);
            const { gone, kept } = leave(list, picked);
            expect(gone).toEqual(call === "takeAbove" ? list.filter((each) => each > amount) : fittingOf(list, amount));
            expect([countOf(picked), unitsOf(picked)]).toEqual([
              gone.length,
              gone.reduce((sum, each) => sum + each, 0),
            ]);
            list = kept;
          } else calls[call](queue, amount);
          expect(costsOf(queue)).toEqual(list);
          expect([queue.length, smallestCost(queue)]).toEqual([list.length, Math.min(...list)]);
          const above = list.filter((each) => each > 3);
          expect(smallestAbove(queue, 3)).toBe(above.length > 0 ? Math.min(...above) : undefined);
        }
      }),
    );
  });
});

function fittingOf(costs: readonly number[], available: number): number[] {
  let left = available;
  return costs.filter((cost) => {
    if (cost > left) return false;
    left -= cost;
    return true;
  });
}
