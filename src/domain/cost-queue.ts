import { type CostRun, fitting } from "./cost-runs.ts";

/** Requests that leave a queue: after `skip` others that stay, the next `count`, which want this cost each. */
export interface Picked {
  readonly skip: number;
  readonly count: number;
  readonly cost: number;
}

/** Requests that wait for a cost each, in order of arrival. */
export interface CostQueue {
  /** How many requests wait. */
  length: number;
  /** Neighbours of the same cost are one run. */
  runs: QueuedRun[];
}

interface QueuedRun {
  readonly cost: number;
  count: number;
  /** The smallest cost of this run and all before it. */
  readonly smallest: number;
}

export function createCostQueue(): CostQueue {
  return { length: 0, runs: [] };
}

/** The smallest cost that is waited for. */
export function smallestCost({ runs }: CostQueue): number {
  return runs.at(-1)?.smallest ?? Number.POSITIVE_INFINITY;
}

export function enqueue(queue: CostQueue, cost: number): void {
  append(queue.runs, cost, 1);
  queue.length++;
}

/**
 * The longest waiting, as so many runs at most. If there are more, those that want more than `reach` are passed over: a
 * smaller cost does not wait behind them for a place here.
 */
export function firstRuns({ runs }: CostQueue, runsMax: number, reach: number): CostRun[] {
  const fitting = runs.length > runsMax ? runs.filter(({ cost }) => cost <= reach) : [];
  return (fitting.length > 0 ? fitting : runs).slice(0, runsMax).map(({ cost, count }) => ({ cost, count }));
}

/** The smallest cost above this one. Undefined: there is none. */
export function smallestAbove({ runs }: CostQueue, limit: number): number | undefined {
  let smallest = Number.POSITIVE_INFINITY;
  for (const { cost } of runs) if (cost > limit && cost < smallest) smallest = cost;
  return smallest === Number.POSITIVE_INFINITY ? undefined : smallest;
}

/** Takes out the requests that can have their cost out of what is available: first fit. */
export function takeFitting(queue: CostQueue, available: number): readonly Picked[] {
  if (available < smallestCost(queue)) return nobody;
  let left = available;
  return takeOut(queue, (run) => {
    const count = fitting(left, run);
    left -= count * run.cost;
    return count;
  });
}

/** Takes out the requests for more than this. */
export function takeAbove(queue: CostQueue, limit: number): readonly Picked[] {
  return takeOut(queue, ({ cost, count }) => (cost > limit ? count : 0));
}

/** Takes out the longest waiting. */
export function dropFirst(queue: CostQueue, count: number): void {
  let left = count;
  takeOut(queue, (run) => {
    const dropped = Math.min(left, run.count);
    left -= dropped;
    return dropped;
  });
}

/** Takes out the one that came last. */
export function dropLast(queue: CostQueue): void {
  const last = queue.runs.at(-1);
  if (last === undefined) return;
  queue.length--;
  last.count--;
  if (last.count === 0) queue.runs.pop();
}

/** Takes out so many requests of each run: the first of it. */
function takeOut(queue: CostQueue, countOf: (run: CostRun) => number): readonly Picked[] {
  const picked: Picked[] = [];
  const before = queue.runs;
  queue.runs = [];
  let skip = 0;
  for (const run of before) {
    const count = countOf(run);
    if (count > 0) {
      picked.push({ skip, count, cost: run.cost });
      queue.length -= count;
      skip = 0;
    }
    if (count === run.count) continue;
    skip += run.count - count;
    append(queue.runs, run.cost, run.count - count);
  }
  return picked;
}

const nobody: readonly Picked[] = [];

function append(runs: QueuedRun[], cost: number, count: number): void {
  const last = runs.at(-1);
  if (last?.cost === cost) last.count += count;
  else runs.push({ cost, count, smallest: Math.min(cost, last?.smallest ?? cost) });
}

/** What all of them want together. */
export function unitsOf(picked: readonly Picked[]): number {
  return picked.reduce((sum, { cost, count }) => sum + cost * count, 0);
}

/** How many requests there are. */
export function countOf(picked: readonly Picked[]): number {
  return picked.reduce((sum, { count }) => sum + count, 0);
}
