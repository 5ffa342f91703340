import type { Spend } from "../domain/verification.ts";

/** The counters, as a verification sees them. */
export interface UsageLedger {
  /**
   * Uses one unit. Resolves after COMMIT, so `spent` is durable. Throws `Unavailable` when it could not be found out
   * whether a unit was used: it may have been, but never more than one.
   */
  spend(keyId: string): Promise<Spend>;
}

/** The counters, as a storage engine keeps them: many keys per commit. */
export interface UsageEngine {
  /**
   * Applies what refills are due and grants each charge as many of its uses as there are, all in one commit. Answers one
   * result per charge, in order. A charge that cannot be settled fails alone; it throws `Unavailable` when nothing is
   * known of any. No key appears twice in one call, and the engine's own clock decides.
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
  /** How far in the future the latest refill of the counter was due. Absent where it was not. */
  readonly refilledAheadMs?: number;
}

/** Without the member, where a counter is as it should be. */
export function refilledAhead(aheadMs: number): { readonly refilledAheadMs?: number } {
  return aheadMs > 0 ? { refilledAheadMs: aheadMs } : {};
}

export type ChargeResult =
  | SettledCharge
  | { readonly outcome: "missing" }
  | { readonly outcome: "failed"; readonly reason: string };
