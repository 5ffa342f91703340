import type { CostRun } from "../domain/cost-runs.ts";
import type { MaybePromise } from "../domain/maybe-promise.ts";
import { Unavailable } from "../domain/unavailable.ts";
import type { CountedSpend, Spend } from "../domain/verification.ts";

/** The counters that one caller is charged on: one, or its own and one that it shares with others. */
export type SpentCounters = readonly [subject: string] | readonly [own: string, shared: string];

/** The counters, as a verification sees them. */
export interface UsageLedger {
  /**
   * Takes the cost, at least 1, from every counter or from none. Resolves after COMMIT, so `spent` is durable. Throws
   * `Unavailable` if it is unknown whether the cost was taken: it may have been, but never more than once.
   */
  spend(counters: SpentCounters, cost: number): Promise<Spend>;
}

/** The counters, as a coordinator uses them for its edges. */
export interface ChargeLedger {
  /**
   * Charges callers on the counter `subject`: see `UsageEngine`. Resolves after COMMIT. It is not executed after
   * `expiresAtMs` of monotonic time. Throws `Unavailable` if it is unknown what was taken: each cost at most once.
   */
  charge(subject: string, run: ChargeRun, expiresAtMs: number): Promise<ChargeOutcome>;
}

/** Callers that came one after the other, for the same cost from the same counters. */
export interface ChargeRun extends CostRun {
  /** The counter that pays beside the one that they are charged on, which is then the shared one. Absent: there is none. */
  readonly own?: string | undefined;
}

export type ChargeOutcome = ChargeResult | { readonly outcome: "notExecuted" };

/** The counters in a storage engine: many charges per commit. */
export interface UsageEngine {
  /**
   * Applies the refills that are due and settles the charges one after the other, all in one commit. Of each charge as
   * many callers are granted their cost as its counters can pay for: each caller from both counters, or from none. One
   * that does not fit does not hold up a smaller one behind it. Returns one result per charge, in order. A charge that
   * cannot be settled fails alone. Throws `Unavailable` if the outcome of all is unknown. Time is the engine's own clock.
   */
  settle(charges: readonly Charge[]): Promise<readonly ChargeResult[]>;
}

export interface Charge extends CostRun {
  readonly subject: string;
  /** The counter that pays the same beside `subject`. Absent: there is none. */
  readonly shared?: string;
}

export interface SettledCharge {
  readonly outcome: "settled";
  /** How many callers are granted their cost: the first of them. */
  readonly granted: number;
  /** The balance of `subject` afterwards. */
  readonly remaining: number;
  /** The balance of `shared` afterwards, if there is one. */
  readonly sharedRemaining?: number;
  /** How far in the future the latest refill of a counter was due. Absent if it was not in the future. */
  readonly refilledAheadMs?: number;
}

/** The property is left out if the refill was not early. */
export function refilledAhead(aheadMs: number): { readonly refilledAheadMs?: number } {
  return aheadMs > 0 ? { refilledAheadMs: aheadMs } : {};
}

/** The property is left out if there is no shared counter. */
export function sharedBalance(remaining: number | undefined): { readonly sharedRemaining?: number } {
  return remaining === undefined ? {} : { sharedRemaining: remaining };
}

export type ChargeResult =
  | SettledCharge
  /** One of its counters is not there. Nothing was taken from the other. */
  | { readonly outcome: "missing" }
  | { readonly outcome: "failed"; readonly reason: string };

/** Most runs of one counter in one commit. More would keep the counter locked for long. */
export const runsMax = 100;

/**
 * What the result of a run means for `count` callers of it that have `before` others in front of them. Of a run the first
 * callers are granted their cost, so each balance is the one after exactly those in front.
 */
export function partOf(result: ChargeResult, cost: number, before: number, count: number): ChargeResult {
  if (result.outcome !== "settled") return result;
  const { granted, remaining, sharedRemaining } = result;
  const upTo = Math.min(granted, before + count);
  const takenLater = (granted - upTo) * cost;
  return {
    outcome: "settled",
    granted: Math.max(0, upTo - before),
    remaining: remaining + takenLater,
    ...(sharedRemaining !== undefined && { sharedRemaining: sharedRemaining + takenLater }),
  };
}

/**
 * What the result of a run means for its caller with `before` others in front of it. Rejects with `Unavailable` if it is
 * unknown.
 */
export function spendOf(result: ChargeResult, cost: number, before: number): MaybePromise<Spend> {
  switch (result.outcome) {
    case "settled": {
      const { granted, remaining, sharedRemaining } = result;
      const takenLater = before < granted ? (granted - 1 - before) * cost : 0;
      const outcome = before < granted ? "spent" : "exhausted";
      if (sharedRemaining === undefined) return { outcome, remaining: remaining + takenLater };
      const spend: CountedSpend = {
        outcome,
        remaining: remaining + takenLater,
        sharedRemaining: sharedRemaining + takenLater,
      };
      return outcome === "spent" ? spend : { ...spend, lacking: remaining < cost ? "own" : "shared" };
    }
    case "missing":
      return { outcome: "missing" };
    case "failed":
      return Promise.reject(notSettled(result.reason));
  }
}

export function notSettled(reason: string): Unavailable {
  return new Unavailable(`the counter could not be settled: ${reason}`, { affectsOneKeyOnly: true });
}
