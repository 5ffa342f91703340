import type { RateLimit } from "../domain/rate-limit.ts";
import type { InspectingLimiter } from "./limiter.ts";

/** Chooses the limiter by the mode of each subject's limit. */
export function limiterByMode(limiterOf: Readonly<Record<RateLimit["mode"], InspectingLimiter>>): InspectingLimiter {
  return {
    take: (subject, rule, cost, apiId) => limiterOf[rule.mode].take(subject, rule, cost, apiId),
    peek: (subject, rule) => limiterOf[rule.mode].peek(subject, rule),
    inspect: (subject, rule, cost) => limiterOf[rule.mode].inspect(subject, rule, cost),
  };
}
