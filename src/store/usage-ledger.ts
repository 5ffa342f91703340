import { Unavailable } from "../domain/unavailable.ts";
import type { Spend } from "../domain/verification.ts";

/** The counters, as a verification sees them. */
export interface UsageLedger {
  /**
   * Uses one unit. Resolves after COMMIT, so `spent` is durable. Throws `Unavailable` if it is unknown whether a unit was
   * used: it may have been, but never more than one.
   */
  spend(subject: string): Promise<Spend>;
}

/** The counters, as a coordinator uses them for its edges. */
export interface ChargeLedger {
  /**
   * Uses up to `wanted` units. Resolves after COMMIT. It is not executed after `expiresAtMs` of monotonic time. Throws
   * `Unavailable` if it is unknown whether units were used: they may have been, but never more than `wanted`.
   */
  charge(subject: string, wanted: number, expiresAtMs: number): Promise<ChargeOutcome>;
}

export type ChargeOutcome = ChargeResult | { readonly outcome: "notExecuted" };

/** The counters in a storage engine: many subjects per commit. */
export interface UsageEngine {
  /**
   * Applies due refills and grants each charge as many uses as are left, all in one commit. Returns one result per
   * charge, in order. A charge that cannot be settled fails alone. Throws `Unavailable` if the outcome of all is unknown.
   * No subject appears twice in one call. Time is the engine's own clock.
   */
  settle(charges: readonly Charge[]): Promise<readonly ChargeResult[]>;
}

export interface Charge {
  readonly subject: string;
  readonly wanted: number;
}

export interface SettledCharge {
  readonly outcome: "settled";
  readonly granted: number;
  readonly remaining: number;
  /** How far in the future the counter's latest refill was due. Absent if it was not in the future. */
  readonly refilledAheadMs?: number;
}

/** The property is left out if the refill was not early. */
export function refilledAhead(aheadMs: number): { readonly refilledAheadMs?: number } {
  return aheadMs > 0 ? { refilledAheadMs: aheadMs } : {};
}

export type ChargeResult =
  | SettledCharge
  | { readonly outcome: "missing" }
  | { readonly outcome: "failed"; readonly reason: string };

/**
 * What a charge means for the i-th of its callers: the first `granted` get what remained after each of them, in order; the
 * others find the counter used up.
 */
export function spendOf(i: number, result: ChargeOutcome): Spend {
  switch (result.outcome) {
    case "settled": {
      const { granted, remaining } = result;
      if (i < granted) return { outcome: "spent", remaining: remaining + granted - 1 - i };
      return { outcome: "exhausted", remaining };
    }
    case "missing":
      return { outcome: "missing" };
    case "failed":
      throw new Unavailable(`the counter could not be settled: ${result.reason}`);
    case "notExecuted":
      throw new Unavailable("the use came too late and was not charged");
  }
}
