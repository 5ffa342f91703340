import type { CostRun } from "../../src/domain/cost-runs.ts";

/** So many waiting requests of cost 1, as an ask has them. */
export function ones(count: number): CostRun[] {
  return count === 0 ? [] : [{ cost: 1, count }];
}
