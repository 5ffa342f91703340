import type { PermitAsk } from "./permit-window.ts";

/** What a pool says to one request. */
export type PermitTake =
  | { readonly outcome: "admitted"; readonly gen: number }
  /** Nothing is to be had: all of the window's permits are spent, or none came back for too long. */
  | { readonly outcome: "denied" }
  /** The caller queues; a later verdict settles it. */
  | { readonly outcome: "wait" };

/** What becomes of those who wait, the longest waiting first. Who is neither admitted nor denied goes on waiting. */
export interface PermitVerdict {
  /** The window of the permits that the admitted ones got. */
  readonly gen: number;
  readonly admitted: number;
  readonly denied: number;
  /** Whether the denied ones could not have been served: others may hold permits that come back after all. */
  readonly settled: boolean;
}

/** One exchange with the ledger. The number tells it from the pool's others. */
export interface PermitMessage {
  readonly number: number;
  readonly sentAtMs: number;
  readonly ask: PermitAsk;
}
