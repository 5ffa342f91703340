import type { AtOnce } from "../domain/at-once.ts";
import type { RateLimit, RateLimitState } from "../domain/rate-limit.ts";

/** Holds keys to their rate limits. */
export interface RateLimiter {
  /**
   * Takes one permit of the key's window, if there is one, and opens the window if none is open. Answers at once wherever
   * it can: a promise is for those who have to wait. Throws or rejects with `Unavailable` when it cannot decide.
   */
  take(keyId: string, rule: RateLimit): AtOnce<Permit>;

  /** Where the key stands, taking nothing. */
  look(keyId: string, rule: RateLimit): AtOnce<RateLimitState>;
}

/**
 * What became of one verification in its window, and where the key stands after it. A permit that was admitted is
 * charged from then on; whoever took it says once what became of it.
 */
export interface Permit extends RateLimitState {
  /** `missing`: there is no such key any more. */
  readonly outcome: "admitted" | "limited" | "missing";
  /** It was used. */
  keep(): void;
  /** It was not used after all: the charge is undone, in its own window only. Answers where the key stands then. */
  giveBack(): AtOnce<RateLimitState>;
}
