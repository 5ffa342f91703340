/** The largest possible limit. */
export const limitMax = 2_147_483_647;

/** At most `limit` verifications per window of `durationMs`. The first verification opens the window. */
export interface RateLimit {
  /** `local`: each replica counts alone and receives the counts of others later. `strict`: all replicas together, never more. */
  readonly mode: "local" | "strict";
  readonly limit: number;
  readonly durationMs: number;
}

export const durationMinMs = 1000;
/** 30 days. */
export const durationMaxMs = 2_592_000_000;

/** Whether a rate limit that another process has sent can be one. */
export function isRateLimit({ mode, limit, durationMs }: Readonly<Record<keyof RateLimit, unknown>>): boolean {
  const isWithin = (number: unknown, min: number, max: number) =>
    Number.isSafeInteger(number) && (number as number) >= min && (number as number) <= max;
  return (
    (mode === "local" || mode === "strict") &&
    isWithin(limit, 1, limitMax) &&
    isWithin(durationMs, durationMinMs, durationMaxMs)
  );
}

/** A subject's state in its window, as shown to callers. */
export interface RateLimitState {
  readonly limit: number;
  /** Verifications that would still pass now. */
  readonly remaining: number;
  /** When the window ends: Unix time. */
  readonly resetMs: number;
}
