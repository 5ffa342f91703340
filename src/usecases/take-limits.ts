import { type Costs, costOf } from "../domain/costs.ts";
import type { Key } from "../domain/key.ts";
import type { NamedLimit } from "../domain/limits.ts";
import { allOf, andThen, type MaybePromise } from "../domain/maybe-promise.ts";
import type { RateLimit, RateLimitState } from "../domain/rate-limit.ts";
import type { RefusalReason } from "../domain/refusal-reason.ts";
import { type LimitStates, noLimitStates } from "../domain/verification.ts";
import type { Permit, RateLimiter } from "../ratelimit/limiter.ts";
import { takeAll } from "./take-all.ts";

/** What one verification has taken of all limits of its key. Either committed or released, once. */
export interface TakenLimits extends LimitStates {
  readonly outcome: Permit["outcome"];
  /** Which limit refuses, if one does. */
  readonly reason: RefusalReason | undefined;
  commit(): void;
  /** The states afterwards. */
  release(): MaybePromise<LimitStates>;
}

/** Takes from all limits of the key or from none. Most keys have at most the one without a name. */
export function takeLimits(limiter: RateLimiter, key: Key, costs: Costs): MaybePromise<TakenLimits> {
  if (key.limits !== undefined) return takeSeveral(limiter, limitsOf(key, key.limits), costs);
  const { rateLimit } = key;
  if (rateLimit === undefined) return nothingTaken;
  if (costs.unnamed === 0) return andThen(limiter.peek(key.id, rateLimit), (state) => new OneLimitPeeked(state));
  return andThen(limiter.take(key.id, rateLimit, costs.unnamed), (permit) => new OneLimitTaken(permit));
}

/** The states of all limits of the key. */
export function peekLimits(limiter: RateLimiter, key: Key): MaybePromise<LimitStates> {
  if (key.limits !== undefined) {
    const limits = limitsOf(key, key.limits);
    const peeked = limits.map(({ subject, rule }) => limiter.peek(subject, rule));
    return andThen(allOf(peeked), (states) => statesOf(limits, states));
  }
  if (key.rateLimit === undefined) return noLimitStates;
  return andThen(limiter.peek(key.id, key.rateLimit), (rateLimit) => ({ rateLimit, rateLimits: undefined }));
}

interface AnyLimit {
  readonly name: string | undefined;
  readonly subject: string;
  readonly rule: RateLimit;
}

/** In the order in which they are named when several refuse. */
function limitsOf({ id, rateLimit }: Key, named: readonly NamedLimit[]): readonly AnyLimit[] {
  return rateLimit === undefined ? named : [{ name: undefined, subject: id, rule: rateLimit }, ...named];
}

function takeSeveral(limiter: RateLimiter, limits: readonly AnyLimit[], costs: Costs): MaybePromise<TakenLimits> {
  const wanted = limits.map(({ name, subject, rule }) => ({ subject, rule, cost: costOf(costs, name) }));
  return andThen(takeAll(limiter, wanted), (taken) => ({
    outcome: taken.outcome,
    reason: taken.refusedBy < 0 ? undefined : { check: "limit", of: "key", name: limits[taken.refusedBy]?.name },
    ...statesOf(limits, taken.states),
    commit: () => taken.commit(),
    release: () => andThen(taken.release(), (states) => statesOf(limits, states)),
  }));
}

function statesOf(limits: readonly AnyLimit[], states: readonly RateLimitState[]): LimitStates {
  let rateLimit: RateLimitState | undefined;
  const rateLimits: { name: string; state: RateLimitState }[] = [];
  limits.forEach(({ name }, i) => {
    const state = states[i] as RateLimitState;
    if (name === undefined) rateLimit = state;
    else rateLimits.push({ name, state });
  });
  return { rateLimit, rateLimits };
}

const limitIsReached: RefusalReason = { check: "limit", of: "key" };

/** Of a key whose only limit has no name. */
class OneLimitTaken implements TakenLimits {
  readonly rateLimits = undefined;
  readonly rateLimit: Permit;

  constructor(permit: Permit) {
    this.rateLimit = permit;
  }

  get outcome(): Permit["outcome"] {
    return this.rateLimit.outcome;
  }

  get reason(): RefusalReason | undefined {
    return this.outcome === "limited" ? limitIsReached : undefined;
  }

  commit(): void {
    this.rateLimit.commit();
  }

  release(): MaybePromise<LimitStates> {
    return andThen(this.rateLimit.release(), (rateLimit) => ({ rateLimit, rateLimits: undefined }));
  }
}

/** The same, where nothing is to be taken. */
class OneLimitPeeked implements TakenLimits {
  readonly outcome = "admitted";
  readonly reason = undefined;
  readonly rateLimits = undefined;
  readonly rateLimit: RateLimitState;

  constructor(rateLimit: RateLimitState) {
    this.rateLimit = rateLimit;
  }

  commit(): void {}

  release(): LimitStates {
    return this;
  }
}

const nothingTaken: TakenLimits = {
  ...noLimitStates,
  outcome: "admitted",
  reason: undefined,
  commit() {},
  release: () => noLimitStates,
};
