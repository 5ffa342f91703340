import type { PermitAsk } from "./permit-window.ts";
import type { RateLimitState } from "./rate-limit.ts";

/** The pool's answer to one request. */
export type PermitTake =
  | { readonly outcome: "admitted"; readonly gen: number }
  /** No permit is available: all of the window's permits are spent, or none came back for too long. */
  | { readonly outcome: "denied" }
  /** The caller waits; a later verdict admits or denies it. */
  | { readonly outcome: "wait" };

/** How many waiting requests are admitted and denied, the longest waiting first. The rest keep waiting. */
export interface PermitVerdict {
  /** The window that the admitted requests were charged to. */
  readonly gen: number;
  readonly admitted: number;
  readonly denied: number;
  /** True: no permit could have served the denied ones. False: other replicas may still return permits they hold. */
  readonly isFinal: boolean;
  /** The ledger has no permit left for those that keep waiting: what they are shown if they give up. */
  readonly short: RateLimitState | undefined;
}

/** One exchange with the ledger. The number identifies it within the pool. */
export interface PermitMessage {
  readonly number: number;
  readonly sentAtMs: number;
  /** How many of the returned permits were outdated. */
  readonly outdated: number;
  readonly ask: PermitAsk;
}
