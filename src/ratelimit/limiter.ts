import type { MaybePromise } from "../domain/maybe-promise.ts";
import type { RateLimit, RateLimitState } from "../domain/rate-limit.ts";

/** Enforces the rate limits of subjects. */
export interface RateLimiter {
  /**
   * Takes one permit from the subject's window, if one is left, and opens a window if none is open. Answers synchronously
   * unless it has to wait. Throws or rejects with `Unavailable` if it cannot decide.
   */
  take(subject: string, rule: RateLimit): MaybePromise<Permit>;

  /** The subject's state, without taking a permit. */
  peek(subject: string, rule: RateLimit): MaybePromise<RateLimitState>;
}

/**
 * The result of one verification in its window, and the subject's state after it. An admitted permit is charged from the
 * start; the caller must say exactly once whether it was used.
 */
export interface Permit extends RateLimitState {
  /** `missing`: the subject no longer exists. */
  readonly outcome: "admitted" | "limited" | "missing";
  /** It was used. */
  commit(): void;
  /** It was not used: the charge is undone, in its own window only. Returns the subject's state afterwards. */
  release(): MaybePromise<RateLimitState>;
}
