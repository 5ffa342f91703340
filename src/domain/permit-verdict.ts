import type { Picked } from "./cost-queue.ts";
import type { PermitAsk } from "./permit-window.ts";
import type { RateLimitState } from "./rate-limit.ts";

/** The pool's answer to one request. */
export type PermitTake =
  | { readonly outcome: "admitted"; readonly gen: number }
  /** So many permits are not to be had: the window's other permits are spent, or did not come back for too long. */
  | { readonly outcome: "denied" }
  /** The caller waits; a later verdict admits or denies it. */
  | { readonly outcome: "wait" };

/** Which waiting requests are admitted, and which of the others are denied. The rest keep waiting. */
export interface PermitVerdict {
  /** The window that the admitted requests were charged to. */
  readonly gen: number;
  readonly admitted: readonly Picked[];
  /** Of those that are left when the admitted ones are gone. */
  readonly denied: readonly Picked[];
  /** True: no permit could have served the denied ones. False: other replicas may still return permits they hold. */
  readonly isFinal: boolean;
  /** Some that keep waiting want more than is left in the ledger. */
  readonly short: Shortage | undefined;
}

/** Requests for more than `above` could not be served: what they are shown if they give up when this window is over. */
export interface Shortage {
  readonly gen: number;
  readonly above: number;
  readonly state: RateLimitState;
}

/** One exchange with the ledger. The number identifies it within the pool. */
export interface PermitMessage {
  readonly number: number;
  readonly sentAtMs: number;
  /** How many of the returned permits were outdated. */
  readonly outdated: number;
  readonly ask: PermitAsk;
}
