import type { Spend } from "../domain/verification.ts";

/** The counters, as a verification sees them. */
export interface UsageLedger {
  /**
   * Uses one unit. Resolves after COMMIT, so `spent` is durable. Throws `Unavailable` if it is unknown whether a unit was
   * used: it may have been, but never more than one.
   */
  spend(keyId: string): Promise<Spend>;
}

/** The counters in a storage engine: many keys per commit. */
export interface UsageEngine {
  /**
   * Applies due refills and grants each charge as many uses as are left, all in one commit. Returns one result per
   * charge, in order. A charge that cannot be settled fails alone. Throws `Unavailable` if the outcome of all is unknown.
   * No key appears twice in one call. Time is the engine's own clock.
   */
  settle(charges: readonly Charge[]): Promise<readonly ChargeResult[]>;
}

export interface Charge {
  readonly keyId: string;
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
