import { type CostRun, fitting } from "./cost-runs.ts";

/** Requests that leave a queue: after `skip` others that stay, the next `count`, which want this cost each. */
export interface Picked {
  readonly skip: number;
  readonly count: number;
  readonly cost: number;
}

/** Requests that wait for a cost each, in order of arrival. Fields are not `#private`: the model checker copies them. */
export class CostQueue {
  /** How many requests wait. */
  length = 0;
  protected runs: QueuedRun[] = [];

  /** The smallest cost that is waited for. */
  get smallest(): number {
    return this.runs.at(-1)?.smallest ?? Number.POSITIVE_INFINITY;
  }

  push(cost: number): void {
    append(this.runs, cost, 1);
    this.length++;
  }

  /**
   * The longest waiting, as so many runs at most. If there are more, those that want more than `reach` are passed over: a
   * smaller cost does not wait behind them for a place here.
   */
  firstRuns(runsMax: number, reach: number): CostRun[] {
    const fitting = this.runs.length > runsMax ? this.runs.filter(({ cost }) => cost <= reach) : [];
    return (fitting.length > 0 ? fitting : this.runs).slice(0, runsMax).map(({ cost, count }) => ({ cost, count }));
  }

  /** The smallest cost above this one. Undefined: there is none. */
  smallestAbove(limit: number): number | undefined {
    let smallest = Number.POSITIVE_INFINITY;
    for (const { cost } of this.runs) if (cost > limit && cost < smallest) smallest = cost;
    return smallest === Number.POSITIVE_INFINITY ? undefined : smallest;
  }

  /** Takes out the requests that can have their cost out of what is available: first fit. */
  takeFitting(available: number): readonly Picked[] {
    if (available < this.smallest) return nobody;
    let left = available;
    return this.take((run) => {
      const count = fitting(left, run);
      left -= count * run.cost;
      return count;
    });
  }

  /** Takes out the requests for more than this. */
  takeAbove(limit: number): readonly Picked[] {
    return this.take(({ cost, count }) => (cost > limit ? count : 0));
  }

  /** Takes out the longest waiting. */
  dropFirst(count: number): void {
    let left = count;
    this.take((run) => {
      const dropped = Math.min(left, run.count);
      left -= dropped;
      return dropped;
    });
  }

  /** Takes out the one that came last. */
  dropLast(): void {
    const last = this.runs.at(-1);
    if (last === undefined) return;
    this.length--;
    last.count--;
    if (last.count === 0) this.runs.pop();
  }

  clear(): void {
    this.length = 0;
    this.runs = [];
  }

  /** Takes out so many requests of each run: the first of it. */
  private take(countOf: (run: CostRun) => number): readonly Picked[] {
    const picked: Picked[] = [];
    const before = this.runs;
    this.runs = [];
    let skip = 0;
    for (const run of before) {
      const count = countOf(run);
      if (count > 0) {
        picked.push({ skip, count, cost: run.cost });
        this.length -= count;
        skip = 0;
      }
      if (count === run.count) continue;
      skip += run.count - count;
      append(this.runs, run.cost, run.count - count);
    }
    return picked;
  }
}

const nobody: readonly Picked[] = [];

interface QueuedRun {
  readonly cost: number;
  count: number;
  /** The smallest cost of this run and all before it. */
  readonly smallest: number;
}

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
