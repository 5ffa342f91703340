import { type Costs, costOf } from "../domain/costs.ts";
import { allOf, andThen, type MaybePromise } from "../domain/maybe-promise.ts";
import type { RateLimit, RateLimitState } from "../domain/rate-limit.ts";
import type { Holder, RefusalReason } from "../domain/refusal-reason.ts";
import { type Holders, type LimitStates, type NamedLimitState, noLimitStates } from "../domain/verification.ts";
import type { Permit, RateLimiter } from "../ratelimit/limiter.ts";
import { takeAll } from "./take-all.ts";

/** What one verification has taken of all its limits. Either committed or released, once. */
export interface TakenLimits extends LimitStates {
  readonly outcome: Permit["outcome"];
  /** Which limit refuses, if one does. */
  readonly reason: RefusalReason | undefined;
  commit(): void;
  /** The states afterwards. */
  release(): MaybePromise<LimitStates>;
}

/** Takes from all limits of the key and its owner or from none. Most keys have at most the one without a name. */
export function takeLimits(limiter: RateLimiter, holders: Holders, costs: Costs): MaybePromise<TakenLimits> {
  if (hasNamed(holders)) return takeSeveral(limiter, limitsOf(holders), costs);
  const { id, rateLimit } = holders.key;
  if (rateLimit === undefined) return nothingTaken;
  if (costs.unnamed === 0) return andThen(limiter.peek(id, rateLimit), (state) => new OneLimitPeeked(state));
  return andThen(limiter.take(id, rateLimit, costs.unnamed), (permit) => new OneLimitTaken(permit));
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
  return key.limits !== undefined || owner?.limits !== undefined;
}

interface AnyLimit {
  readonly of: Holder;
  readonly name: string | undefined;
  readonly subject: string;
  readonly rule: RateLimit;
}

/** In the order in which they are named when several refuse. */
export function limitsOf({ key, owner }: Holders): readonly AnyLimit[] {
  const limits: AnyLimit[] = [];
  if (key.rateLimit !== undefined) limits.push({ of: "key", name: undefined, subject: key.id, rule: key.rateLimit });
  for (const { name, subject, rule } of key.limits ?? []) limits.push({ of: "key", name, subject, rule });
  for (const { name, subject, rule } of owner?.limits ?? []) limits.push({ of: "owner", name, subject, rule });
  return limits;
}

function takeSeveral(limiter: RateLimiter, limits: readonly AnyLimit[], costs: Costs): MaybePromise<TakenLimits> {
  const wanted = limits.map(({ name, subject, rule }) => ({ subject, rule, cost: costOf(costs, name) }));
  return andThen(takeAll(limiter, wanted), (taken) => ({
    outcome: taken.outcome,
    reason: taken.refusedBy < 0 ? undefined : reasonOf(limits[taken.refusedBy] as AnyLimit),
    ...statesOf(limits, taken.states),
    commit: () => taken.commit(),
    release: () => andThen(taken.release(), (states) => statesOf(limits, states)),
  }));
}

function reasonOf({ of, name }: AnyLimit): RefusalReason {
  return { check: "limit", of, name };
}

function statesOf(limits: readonly AnyLimit[], states: readonly RateLimitState[]): LimitStates {
  let rateLimit: RateLimitState | undefined;
  const named: Record<Holder, NamedLimitState[]> = { key: [], owner: [] };
  limits.forEach(({ of, name }, i) => {
    const state = states[i] as RateLimitState;
    if (name === undefined) rateLimit = state;
    else named[of].push({ name, state });
  });
  return { rateLimit, rateLimits: unlessEmpty(named.key), ownerRateLimits: unlessEmpty(named.owner) };
}

function unlessEmpty(states: readonly NamedLimitState[]): readonly NamedLimitState[] | undefined {
  return states.length === 0 ? undefined : states;
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
