import { andThen, type MaybePromise } from "../domain/maybe-promise.ts";
import type { RateLimit, RateLimitState } from "../domain/rate-limit.ts";
import { type FreeStanding, freeStandingSubject } from "../domain/subject.ts";
import type { Permit, RateLimiter } from "../ratelimit/limiter.ts";

export interface LimitRequest extends FreeStanding {
  readonly rule: RateLimit;
  readonly cost: number;
}

export interface LimitAnswer {
  readonly isWithin: boolean;
  readonly state: RateLimitState;
}

export interface LimitDeps {
  readonly limiter: RateLimiter;
}

/** Counts against a limit that belongs to nobody. A cost of 0 only asks for the state. */
export function limit({ rule, cost, ...named }: LimitRequest, { limiter }: LimitDeps): MaybePromise<LimitAnswer> {
  const subject = freeStandingSubject(named, rule);
  if (cost === 0) return andThen(limiter.peek(subject, rule), (state) => ({ isWithin: true, state }));
  return andThen(limiter.take(subject, rule, cost, named.apiId), (permit: Permit) => {
    permit.commit();
    return { isWithin: permit.outcome === "admitted", state: permit };
  });
}
