import { type Costs, costOf, costsOfOne } from "../domain/costs.ts";
import type { NamedLimit } from "../domain/limits.ts";
import { allOf, andThen, type MaybePromise } from "../domain/maybe-promise.ts";
import type { RateLimitState } from "../domain/rate-limit.ts";
import type { Holder, RefusalReason } from "../domain/refusal-reason.ts";
import { type Holders, type LimitStates, type NamedLimitState, noLimitStates } from "../domain/verification.ts";
import type { Permit, RateLimiter } from "../ratelimit/limiter.ts";
import { type TakenPermits, takeAll, type WantedPermit } from "./take-all.ts";

/** What one verification has taken of all its limits. Either committed or released, once. */
export interface TakenLimits extends LimitStates {
  readonly outcome: Permit["outcome"];
  /** Which limit refuses, if one does. */
  readonly reason: RefusalReason | undefined;
  commit(): void;
  /** The states afterwards. */
  release(): MaybePromise<LimitStates>;
}

/**
 * Takes from all limits of the key and its owner or from none. Most keys have at most the one without a name. Windows that
 * are opened count for the key's API, those of its owner too.
 */
export function takeLimits(limiter: RateLimiter, holders: Holders, costs: Costs): MaybePromise<TakenLimits> {
  if (hasNamed(holders)) return takeSeveral(limiter, limitsOf(holders, costs), holders.key.apiId);
  const { id, rateLimit, apiId } = holders.key;
  if (rateLimit === undefined) return nothingTaken;
  if (costs.unnamed === 0) return andThen(limiter.peek(id, rateLimit), (state) => new OneLimitPeeked(state));
  return andThen(limiter.take(id, rateLimit, costs.unnamed, apiId), (permit) => new OneLimitTaken(permit));
}

/** The states of all limits of the key and its owner. */
export function peekLimits(limiter: RateLimiter, holders: Holders): MaybePromise<LimitStates> {
  if (hasNamed(holders)) {
    const limits = limitsOf(holders);
    const peeked = limits.map(({ subject, rule }) => limiter.peek(subject, rule));
    return andThen(allOf(peeked), (states) => statesOf(limits, states));
  }
  const { id, rateLimit } = holders.key;
  if (rateLimit === undefined) return noLimitStates;
  return andThen(limiter.peek(id, rateLimit), (state) => ({ ...noLimitStates, rateLimit: state }));
}

function hasNamed({ key, owner }: Holders): boolean {
  return key.rateLimits !== undefined || owner?.rateLimits !== undefined;
}

interface WantedLimit extends WantedPermit {
  readonly of: Holder;
  readonly name: string | undefined;
}

/** In the order in which they are named when several refuse. */
export function limitsOf({ key, owner }: Holders, costs = costsOfOne): readonly WantedLimit[] {
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

function takeSeveral(limiter: RateLimiter, limits: readonly WantedLimit[], apiId: string): MaybePromise<TakenLimits> {
  return andThen(takeAll(limiter, limits, apiId), (taken) => new SeveralTaken(limits, taken));
}

class SeveralTaken implements TakenLimits {
  readonly limits: readonly WantedLimit[];
  readonly taken: TakenPermits;
  readonly rateLimit: RateLimitState | undefined;
  readonly rateLimits: readonly NamedLimitState[] | undefined;
  readonly ownerRateLimits: readonly NamedLimitState[] | undefined;

  constructor(limits: readonly WantedLimit[], taken: TakenPermits) {
    const { rateLimit, rateLimits, ownerRateLimits } = statesOf(limits, taken.states);
    this.limits = limits;
    this.taken = taken;
    this.rateLimit = rateLimit;
    this.rateLimits = rateLimits;
    this.ownerRateLimits = ownerRateLimits;
  }

  get outcome(): Permit["outcome"] {
    return this.taken.outcome;
  }

  get reason(): RefusalReason | undefined {
    const limit = this.limits[this.taken.refusedBy];
    return limit && { check: "limit", of: limit.of, name: limit.name };
  }

  commit(): void {
    this.taken.commit();
  }

  release(): MaybePromise<LimitStates> {
    return andThen(this.taken.release(), (states) => statesOf(this.limits, states));
  }
}

function statesOf(limits: readonly WantedLimit[], states: readonly RateLimitState[]): LimitStates {
  let rateLimit: RateLimitState | undefined;
  let rateLimits: NamedLimitState[] | undefined;
  let ownerRateLimits: NamedLimitState[] | undefined;
  for (let i = 0; i < limits.length; i++) {
    const { of, name, rule } = limits[i] as WantedLimit;
    const state = states[i] as RateLimitState;
    if (name === undefined) {
      rateLimit = state;
      continue;
    }
    const named = { name, durationMs: rule.durationMs, state };
    if (of === "key") rateLimits = withOneMore(rateLimits, named);
    else ownerRateLimits = withOneMore(ownerRateLimits, named);
  }
  return { rateLimit, rateLimits, ownerRateLimits };
}

function withOneMore<Item>(items: Item[] | undefined, item: Item): Item[] {
  if (items === undefined) return [item];
  items.push(item);
  return items;
}

const limitIsReached: RefusalReason = { check: "limit", of: "key" };

/** Of a key whose only limit has no name. */
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

/** The same, where nothing is to be taken. */
class OneLimitPeeked implements TakenLimits {
  readonly outcome = "admitted";
  readonly reason = undefined;
  readonly rateLimits = undefined;
  readonly ownerRateLimits = undefined;
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
