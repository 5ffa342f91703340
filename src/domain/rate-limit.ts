/** The most that a limit can be. */
export const limitMax = 2_147_483_647;

/** At most `limit` verifications per window of `durationMs`, which the first of them opens. */
export interface RateLimit {
  /** `local`: each replica counts by itself and learns of the others later. `strict`: all of them together, never more. */
  readonly mode: "local" | "strict";
  readonly limit: number;
  readonly durationMs: number;
}

/** Where a key stands in its window, as its user is told. */
export interface RateLimitState {
  readonly limit: number;
  /** How many more would pass now. */
  readonly remaining: number;
  /** When the window ends: Unix time. */
  readonly resetMs: number;
}
