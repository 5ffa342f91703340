import { type Costs, costOf, costsOfOne } from "../domain/costs.ts";
import type { NamedLimit } from "../domain/limits.ts";
import { allOf, andThen, type MaybePromise } from "../domain/maybe-promise.ts";
import type { Holder, RefusalReason } from "../domain/refusal-reason.ts";
import { type LimitHolders, type LimitStates, noLimitStates } from "../domain/verification.ts";
import type { Permit, RateLimiter } from "../ratelimit/limiter.ts";
import { type TakenLimits, takeAll, toLimitStates, type WantedLimit } from "./take-all.ts";

/**
 * Takes from all limits of the key and its owner or from none. Most keys have at most the one without a name. Windows that
 * are opened count for the key's API, those of its owner too.
 */
export function takeLimits(limiter: RateLimiter, holders: LimitHolders, costs: Costs): MaybePromise<TakenLimits> {
  if (hasNamed(holders)) return takeAll(limiter, limitsOf(holders, costs), holders.key.apiId);
  const { id, rateLimit, apiId } = holders.key;
  if (rateLimit === undefined) return nothingTaken;
  if (costs.unnamed === 0) return takeAll(limiter, limitsOf(holders, costs), apiId);
  return andThen(limiter.take(id, rateLimit, costs.unnamed, apiId), (permit) => new OneLimitTaken(permit));
}

/** The states of all limits of the key and its owner. */
export function peekLimits(limiter: RateLimiter, holders: LimitHolders): MaybePromise<LimitStates> {
  if (hasNamed(holders)) {
    const limits = limitsOf(holders);
    const peeked = limits.map(({ subject, rule }) => limiter.peek(subject, rule));
    return andThen(allOf(peeked), (states) => toLimitStates(limits, states));
  }
  const { id, rateLimit } = holders.key;
  if (rateLimit === undefined) return noLimitStates;
  return andThen(limiter.peek(id, rateLimit), (state) => ({ ...noLimitStates, rateLimit: state }));
}

function hasNamed({ key, owner }: LimitHolders): boolean {
  return key.rateLimits !== undefined || owner?.rateLimits !== undefined;
}

/** In the order in which they are named when several refuse. */
export function limitsOf({ key, owner }: LimitHolders, costs = costsOfOne): readonly WantedLimit[] {
  const limits: WantedLimit[] = [];
  if (key.rateLimit !== undefined)
    limits.push({ of: "key", name: undefined, subject: key.id, rule: key.rateLimit, cost: costs.unnamed });
  if (key.rateLimits !== undefined) addNamed(limits, "key", key.rateLimits, costs);
  if (owner?.rateLimits !== undefined) addNamed(limits, "owner", owner.rateLimits, costs);
  return limits;
}

function addNamed(limits: WantedLimit[], of: Holder, named: readonly NamedLimit[], costs: Costs): void {
  for (const { name, subject, rule } of named) limits.push({ of, name, subject, rule, cost: costOf(costs, name) });
}

const limitIsReached: RefusalReason = { check: "limit", of: "key" };

/** For a key whose only limit has no name. */
class OneLimitTaken implements TakenLimits {
  readonly rateLimits = undefined;
  readonly ownerRateLimits = undefined;
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
    return andThen(this.rateLimit.release(), (rateLimit) => ({ ...noLimitStates, rateLimit }));
  }
}

const nothingTaken: TakenLimits = {
  ...noLimitStates,
  outcome: "admitted",
  reason: undefined,
  commit() {},
  release: () => noLimitStates,
};
