import { allOf, andThen, type MaybePromise } from "../domain/maybe-promise.ts";
import type { RateLimit, RateLimitState } from "../domain/rate-limit.ts";
import type { Holder, RefusalReason } from "../domain/refusal-reason.ts";
import type { LimitStates, NamedLimitState } from "../domain/verification.ts";
import type { Permit, RateLimiter } from "../ratelimit/limiter.ts";

/** What one verification wants of one limit. A cost of 0 takes nothing, and no limit refuses it. */
export interface WantedLimit {
  readonly of: Holder;
  readonly name: string | undefined;
  readonly subject: string;
  readonly rule: RateLimit;
  readonly cost: number;
}

/** What one verification has taken of all its limits. Either committed or released, once. */
export interface TakenLimits extends LimitStates {
  /** `missing`: one of the subjects no longer exists. */
  readonly outcome: Permit["outcome"];
  /** Which limit refuses, if one does: the first in order. */
  readonly reason: RefusalReason | undefined;
  commit(): void;
  /** Returns the states afterwards. */
  release(): MaybePromise<LimitStates>;
}

/**
 * Takes from all limits or from none. Strict ones are asked together, so that they take one round trip and one time-out for
 * all. Local ones come last: nothing is waited for between them, so hardly anything taken there has to be given back.
 * Windows that are opened count for the API. Rejects with `Unavailable` if a limit cannot decide; then nothing is taken
 * either.
 */
export function takeAll(
  limiter: RateLimiter,
  wanted: readonly WantedLimit[],
  apiId: string,
): MaybePromise<TakenLimits> {
  const isOneStrict = wanted.some(({ rule }) => rule.mode === "strict");
  return andThen(isOneStrict ? tryEach(limiter, wanted, apiId, "strict", none) : none, (strict) => {
    const outcome = outcomeOf(strict);
    if (outcome !== "admitted") return giveUp(limiter, wanted, strict, outcome);
    return andThen(tryEach(limiter, wanted, apiId, "local", strict), (all) => {
      const outcome = outcomeOf(all);
      return outcome === "admitted" ? admit(limiter, wanted, all) : giveUp(limiter, wanted, all, outcome);
    });
  });
}

/** What became of one limit; undefined: it was not asked. */
type Attempt = Permit | Failure | undefined;

const none: readonly Attempt[] = [];

class Failure {
  readonly outcome = "failed";
  readonly error: unknown;

  constructor(error: unknown) {
    this.error = error;
  }
}

/** Asks the limits of one mode. The attempts at others stay as they are. Loops, because it runs for most keys with named limits. */
function tryEach(
  limiter: RateLimiter,
  wanted: readonly WantedLimit[],
  apiId: string,
  mode: RateLimit["mode"],
  before: readonly Attempt[],
): MaybePromise<readonly Attempt[]> {
  const attempts: MaybePromise<Attempt>[] = [];
  for (let i = 0; i < wanted.length; i++) {
    const each = wanted[i] as WantedLimit;
    attempts.push(each.cost > 0 && each.rule.mode === mode ? tryTake(limiter, each, apiId) : before[i]);
  }
  return allOf(attempts);
}

/** A failure is a value, so that what the others have taken can be given back. */
function tryTake(limiter: RateLimiter, { subject, rule, cost }: WantedLimit, apiId: string): MaybePromise<Attempt> {
  try {
    const taken = limiter.take(subject, rule, cost, apiId);
    return taken instanceof Promise ? taken.catch((error: unknown) => new Failure(error)) : taken;
  } catch (error) {
    return new Failure(error);
  }
}

function outcomeOf(attempts: readonly Attempt[]): Outcome {
  let worst: Outcome = "admitted";
  for (const attempt of attempts)
    if (attempt !== undefined && severity[attempt.outcome] > severity[worst]) worst = attempt.outcome;
  return worst;
}

type Outcome = Permit["outcome"] | "failed";

/** A limit that cannot decide decides for all; a subject that is gone has to be looked up again, whatever the others say. */
const severity: Record<Outcome, number> = { admitted: 0, limited: 1, missing: 2, failed: 3 };

function admit(
  limiter: RateLimiter,
  wanted: readonly WantedLimit[],
  attempts: readonly Attempt[],
): MaybePromise<TakenLimits> {
  const permits = attempts as readonly (Permit | undefined)[];
  if (!permits.includes(undefined)) return new TakenTogether("admitted", wanted, permits as readonly Permit[], permits);
  const states = wanted.map(({ subject, rule }, i) => permits[i] ?? limiter.peek(subject, rule));
  return andThen(allOf(states), (known) => new TakenTogether("admitted", wanted, known, permits));
}

class TakenTogether implements TakenLimits {
  readonly outcome: Permit["outcome"];
  readonly limits: readonly WantedLimit[];
  readonly states: readonly RateLimitState[];
  /** Undefined for a limit that nothing was taken from. Empty if nothing was taken at all. */
  readonly permits: readonly (Permit | undefined)[];
  readonly reason: RefusalReason | undefined;
  readonly rateLimit: RateLimitState | undefined;
  readonly rateLimits: readonly NamedLimitState[] | undefined;
  readonly ownerRateLimits: readonly NamedLimitState[] | undefined;

  /** `states`: in the order of the limits. */
  constructor(
    outcome: Permit["outcome"],
    limits: readonly WantedLimit[],
    states: readonly RateLimitState[],
    permits: readonly (Permit | undefined)[],
    reason?: RefusalReason,
  ) {
    const { rateLimit, rateLimits, ownerRateLimits } = toLimitStates(limits, states);
    this.outcome = outcome;
    this.limits = limits;
    this.states = states;
    this.permits = permits;
    this.reason = reason;
    this.rateLimit = rateLimit;
    this.rateLimits = rateLimits;
    this.ownerRateLimits = ownerRateLimits;
  }

  commit(): void {
    for (const permit of this.permits) permit?.commit();
  }

  release(): MaybePromise<LimitStates> {
    const released = this.states.map((state, i) => this.permits[i]?.release() ?? state);
    return andThen(allOf(released), (states) => toLimitStates(this.limits, states));
  }
}

/** Gives back what was taken. */
function giveUp(
  limiter: RateLimiter,
  wanted: readonly WantedLimit[],
  attempts: readonly Attempt[],
  outcome: Exclude<Outcome, "admitted">,
): MaybePromise<TakenLimits> {
  const stateOf = (attempt: Attempt, i: number): MaybePromise<RateLimitState> => {
    if (attempt?.outcome === "failed" || attempt?.outcome === "missing") return unknownState;
    if (attempt?.outcome === "limited") return attempt;
    const { subject, rule } = wanted[i] as WantedLimit;
    return attempt?.release() ?? limiter.peek(subject, rule);
  };
  return andThen(allOf(attempts.map(stateOf)), (states) => {
    if (outcome === "failed") throw attempts.find((attempt) => attempt instanceof Failure)?.error;
    if (outcome === "missing") return new TakenTogether(outcome, wanted, states, []);
    // A limit that was not asked refuses by its state. One that was asked and gave its permits is no reason.
    const refusing = wanted.find(({ cost }, i) =>
      attempts[i] === undefined ? cost > (states[i] as RateLimitState).remaining : attempts[i].outcome === "limited",
    ) as WantedLimit;
    const { of, name } = refusing;
    return new TakenTogether(outcome, wanted, states, [], { check: "limit", of, name });
  });
}

const unknownState: RateLimitState = { limit: 0, remaining: 0, resetMs: 0 };

/** The states of these limits, which are in the same order. */
export function toLimitStates(limits: readonly WantedLimit[], states: readonly RateLimitState[]): LimitStates {
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
