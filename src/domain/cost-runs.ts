/*
 * Callers that wait for a grant, each for a cost of its own. A cost is granted whole or not at all, in order of arrival,
 * first fit: one that does not fit is refused and does not hold up a smaller one behind it.
 */

/** Callers that came one after the other and want the same cost each, at least 1. */
export interface CostRun {
  readonly cost: number;
  readonly count: number;
}

/** How many of the run's callers can have their cost out of what is available. */
export function fitting(available: number, { cost, count }: CostRun): number {
  return Math.min(count, Math.floor(available / cost));
}

/** How many callers of each run are granted their cost. */
export function grantRuns(available: number, runs: readonly CostRun[]): number[] {
  let left = available;
  return runs.map((run) => {
    const granted = fitting(left, run);
    left -= granted * run.cost;
    return granted;
  });
}
