import type { MaybePromise } from "../domain/maybe-promise.ts";
import type { RateLimit, RateLimitState } from "../domain/rate-limit.ts";

/** Enforces the rate limits of subjects. */
export interface RateLimiter {
  /**
   * Takes the cost from the subject's window, or nothing if less is left; opens a window if none is open. A cost above
   * the limit opens none. Answers synchronously unless it has to wait. Throws or rejects with `Unavailable` if it cannot
   * decide. The cost is at least 1, which it is by default. A window that is opened counts for the API, which can hold a
   * part of all windows only; those of callers that name none count as one API's.
   */
  take(subject: string, rule: RateLimit, cost?: number, apiId?: string): MaybePromise<Permit>;

  /** The subject's state, without taking a permit. */
  peek(subject: string, rule: RateLimit): MaybePromise<RateLimitState>;
}

/** It can also inspect what a verification would find. */
export interface InspectingLimiter extends RateLimiter {
  /**
   * The subject's state as a verification of this cost would find it: of a strict limit in the ledger, whatever this replica
   * knows of it, and of a local one on this replica. Takes nothing and opens no window. Undefined: the subject no longer
   * exists. Rejects with `Unavailable` if it cannot be known.
   */
  inspect(subject: string, rule: RateLimit, cost: number): MaybePromise<RateLimitState | undefined>;
}

/** Chooses the limiter by the mode of each subject's limit. */
export function limiterByMode(limiterOf: Readonly<Record<RateLimit["mode"], InspectingLimiter>>): InspectingLimiter {
  return {
    take: (subject, rule, cost, apiId) => limiterOf[rule.mode].take(subject, rule, cost, apiId),
    peek: (subject, rule) => limiterOf[rule.mode].peek(subject, rule),
    inspect: (subject, rule, cost) => limiterOf[rule.mode].inspect(subject, rule, cost),
  };
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
  /** It was not used: the whole cost is given back, in its own window only. Returns the subject's state afterwards. */
  release(): MaybePromise<RateLimitState>;
}
