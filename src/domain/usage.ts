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

/** The result of asking for `wanted` uses: how many are granted, and the counter afterwards. */
export interface Settlement {
  readonly granted: number;
  readonly counter: UsageCounter;
  /** How far the latest applied boundary lies in the future: above 0 if a clock that was ahead has applied it. */
  readonly refilledAheadMs: number;
}

/** Applies the refill that is due, then grants as many uses as are left. */
export function settle(counter: UsageCounter, wanted: number, nowMs: number): Settlement {
  const due = refilled(counter, nowMs);
  const granted = Math.min(due.remaining, wanted);
  const refilledAheadMs = due.refill === undefined ? 0 : Math.max(0, due.refill.refilledThroughMs - nowMs);
  if (granted === 0) return { granted, counter: due, refilledAheadMs };
  return { granted, counter: { ...due, remaining: due.remaining - granted }, refilledAheadMs };
}
