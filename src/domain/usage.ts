import { type CostRun, fitting } from "./cost-runs.ts";
import { boundariesPassed, latestBoundaryMs, type RefillInterval } from "./refill-calendar.ts";

/** The largest value of a counter; refills are clamped to it. */
export const remainingMax = 2_147_483_647;

export interface RefillRule {
  readonly interval: RefillInterval;
  readonly amount: number;
  /** True: `amount` is added at each boundary. False: the counter is set back to `amount`. */
  readonly carryOver: boolean;
}

export interface Refill extends RefillRule {
  /** The latest boundary whose refill was applied. It never goes back, so no boundary refills twice. */
  readonly refilledThroughMs: number;
}

/** A counter as stored in the ledger. */
export interface UsageCounter {
  readonly remaining: number;
  readonly refill: Refill | undefined;
}

/** A counter for a key created now: its first refill comes at the next boundary. */
export function newCounter(remaining: number, rule: RefillRule | undefined, nowMs: number): UsageCounter {
  return {
    remaining,
    refill: rule && { ...rule, refilledThroughMs: latestBoundaryMs(rule.interval, nowMs) },
  };
}

/** The counter with every refill that is due by `nowMs`; the same object when none is. */
export function refilled(counter: UsageCounter, nowMs: number): UsageCounter {
  const { remaining, refill } = counter;
  if (refill === undefined) return counter;
  const passed = boundariesPassed(refill.interval, refill.refilledThroughMs, nowMs);
  if (passed === 0) return counter;
  return {
    remaining: refill.carryOver
      ? Math.min(remainingMax, remaining + refill.amount * passed)
      : Math.max(remaining, refill.amount),
    refill: { ...refill, refilledThroughMs: latestBoundaryMs(refill.interval, nowMs) },
  };
}

/** The result of charging one counter, or two together. */
export interface Settlement {
  /** How many callers of the run are granted their cost: each from all counters, or from none. */
  readonly granted: number;
  /** The counter afterwards. */
  readonly counter: UsageCounter;
  /** The second counter afterwards, if there is one. */
  readonly shared: UsageCounter | undefined;
  /** How far the latest applied boundary lies in the future: above 0 if a clock that was ahead has applied it. */
  readonly refilledAheadMs: number;
}

/**
 * Applies the refills that are due, to each counter by its own rule, then grants as many callers of the run as all
 * counters can pay for.
 */
export function settle(counter: UsageCounter, run: CostRun, nowMs: number, shared?: UsageCounter): Settlement {
  const own = refilled(counter, nowMs);
  const other = shared && refilled(shared, nowMs);
  const granted = Math.min(fitting(own.remaining, run), other ? fitting(other.remaining, run) : run.count);
  const taken = granted * run.cost;
  return {
    granted,
    counter: without(own, taken),
    shared: other && without(other, taken),
    refilledAheadMs: Math.max(aheadMs(own, nowMs), other ? aheadMs(other, nowMs) : 0),
  };
}

/** The same object when nothing is taken. */
function without(counter: UsageCounter, taken: number): UsageCounter {
  return taken === 0 ? counter : { ...counter, remaining: counter.remaining - taken };
}

function aheadMs({ refill }: UsageCounter, nowMs: number): number {
  return refill === undefined ? 0 : Math.max(0, refill.refilledThroughMs - nowMs);
}
