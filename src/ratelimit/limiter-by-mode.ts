import type { RateLimit } from "../domain/rate-limit.ts";
import type { RateLimiter } from "./limiter.ts";

/** Chooses the limiter by the mode of each key's limit. */
export function limiterByMode(limiterOf: Readonly<Record<RateLimit["mode"], RateLimiter>>): RateLimiter {
  return {
    take: (keyId, rule) => limiterOf[rule.mode].take(keyId, rule),
    peek: (keyId, rule) => limiterOf[rule.mode].peek(keyId, rule),
  };
}
