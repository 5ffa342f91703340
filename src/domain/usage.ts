import { type CostRun, fitting } from "./cost-runs.ts";
import { boundariesPassed, latestBoundaryMs, nextBoundaryMs, type RefillInterval } from "./refill-calendar.ts";

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
  readonly meter: Meter;
}

/*
 * What was spent is everything that was put into a counter without what is left of it, so that a charge writes nothing for
 * it. A reading is what was spent before an hour began; the first charge of the hour makes it. So what was spent before the
 * hour h is in the first reading of h or a later hour; if there is none, nothing was spent since.
 */

export interface Meter {
  /** Everything that was ever put into the counter: by its creation, by refills and by changes of the balance. */
  readonly credited: number;
  /** The hour of the latest reading; no charge counts into one before it, whatever the clock does. 0: there is none. */
  readonly hour: number;
  /** Since when it is metered. */
  readonly sinceMs: number;
  /** The part of what was spent that belongs to owners who had the same id before. */
  readonly formerSpent: number;
}

/** What a counter had spent before this hour began. Hours are counted from 1970 on. */
export interface MeterReading {
  readonly hour: number;
  readonly spent: number;
}

export const hourMs = 3_600_000;

export function hourAt(ms: number): number {
  return Math.floor(ms / hourMs);
}

/** A counter for a key created now: its first refill comes at the next boundary. */
export function newCounter(remaining: number, rule: RefillRule | undefined, nowMs: number): UsageCounter {
  return {
    remaining,
    refill: rule && { ...rule, refilledThroughMs: latestBoundaryMs(rule.interval, nowMs) },
    meter: { credited: remaining, hour: 0, sinceMs: nowMs, formerSpent: 0 },
  };
}

/** When the next refill is due. Undefined: never. */
export function nextRefillMs({ refill }: Pick<UsageCounter, "refill">): number | undefined {
  return refill && nextBoundaryMs(refill.interval, refill.refilledThroughMs);
}

/** What was taken from the counter, and from those of its subject before. */
export function spentOf({ remaining, meter }: UsageCounter): number {
  return meter.credited - remaining;
}

/** The same without what others have spent who had the same id. */
export function ownSpentOf(counter: UsageCounter): number {
  return spentOf(counter) - counter.meter.formerSpent;
}

/** The counter with another balance. That is no spending: the difference was put into it, or taken out. */
export function withBalance(counter: UsageCounter, remaining: number): UsageCounter {
  const { meter } = counter;
  return { ...counter, remaining, meter: { ...meter, credited: meter.credited + remaining - counter.remaining } };
}

/** The reading that has to be stored with a charge, if the charge is the first of its hour. */
export function readingBetween(before: UsageCounter, after: UsageCounter): MeterReading | undefined {
  const { hour } = after.meter;
  return hour === before.meter.hour ? undefined : { hour, spent: spentOf(before) };
}

/** The counter with every refill that is due by `nowMs`; the same object when none is. */
export function refilled(counter: UsageCounter, nowMs: number): UsageCounter {
  const { remaining, refill } = counter;
  if (refill === undefined) return counter;
  const passed = boundariesPassed(refill.interval, refill.refilledThroughMs, nowMs);
  if (passed === 0) return counter;
  const restored = refill.carryOver
    ? Math.min(remainingMax, remaining + refill.amount * passed)
    : Math.max(remaining, refill.amount);
  return {
    ...withBalance(counter, restored),
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
    counter: charged(own, taken, nowMs),
    shared: other && charged(other, taken, nowMs),
    refilledAheadMs: Math.max(aheadMs(own, nowMs), other ? aheadMs(other, nowMs) : 0),
  };
}

/** The same object when nothing is taken. */
function charged(counter: UsageCounter, taken: number, nowMs: number): UsageCounter {
  if (taken === 0) return counter;
  const { remaining, meter } = counter;
  const hour = Math.max(meter.hour, hourAt(nowMs));
  return { ...counter, remaining: remaining - taken, meter: hour === meter.hour ? meter : { ...meter, hour } };
}

function aheadMs({ refill }: UsageCounter, nowMs: number): number {
  return refill === undefined ? 0 : Math.max(0, refill.refilledThroughMs - nowMs);
}
