import { boundariesPassed, latestBoundaryMs, type RefillInterval } from "./refill-calendar.ts";

/** The most a counter holds; beyond it a refill is clamped. */
export const remainingMax = 2_147_483_647;

export interface RefillRule {
  readonly interval: RefillInterval;
  readonly amount: number;
  /** Whether unused ones pile up: then `amount` is added at each boundary. Otherwise the counter is restored to it. */
  readonly carryOver: boolean;
}

export interface Refill extends RefillRule {
  /** The latest boundary whose refill the counter holds. It never goes back, so no boundary refills twice. */
  readonly refilledThroughMs: number;
}

/** A counter as the ledger keeps it. */
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

/** What `wanted` uses asked for at once come to: how many are granted, and the counter after them. */
export interface Settlement {
  readonly granted: number;
  readonly counter: UsageCounter;
  /** How far in the future the latest boundary is whose refill the counter holds: a clock that was ahead applied it. */
  readonly refilledAheadMs: number;
}

/** Applies what refill is due, then grants as many uses as there are. */
export function settle(counter: UsageCounter, wanted: number, nowMs: number): Settlement {
  const due = refilled(counter, nowMs);
  const granted = Math.min(due.remaining, wanted);
  const refilledAheadMs = due.refill === undefined ? 0 : Math.max(0, due.refill.refilledThroughMs - nowMs);
  if (granted === 0) return { granted, counter: due, refilledAheadMs };
  return { granted, counter: { ...due, remaining: due.remaining - granted }, refilledAheadMs };
}
