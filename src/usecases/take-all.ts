import { allOf, andThen, type MaybePromise } from "../domain/maybe-promise.ts";
import type { RateLimit, RateLimitState } from "../domain/rate-limit.ts";
import type { Permit, RateLimiter } from "../ratelimit/limiter.ts";

/** What one verification wants of one limit. A cost of 0 takes nothing, and no limit refuses it. */
export interface WantedPermit {
  readonly subject: string;
  readonly rule: RateLimit;
  readonly cost: number;
}

/** The result of one verification in all its windows. Like a `Permit`, it is either committed or released, once. */
export interface TakenPermits {
  /** `missing`: one of the subjects no longer exists. */
  readonly outcome: Permit["outcome"];
  /** The states of the limits, in the order in which they were wanted. */
  readonly states: readonly RateLimitState[];
  /** The first limit that has not enough left; -1 unless the outcome is `limited`. */
  readonly refusedBy: number;
  commit(): void;
  release(): MaybePromise<readonly RateLimitState[]>;
}

/**
 * Takes from all limits or from none. Strict ones are asked together, so that they take one round trip and one time-out for
 * all. Local ones come last: nothing is waited for between them, so that hardly anything taken there has to be given back.
 * Windows that are opened count for the API. Rejects with `Unavailable` if a limit cannot decide; then nothing is taken
 * either.
 */
export function takeAll(
  limiter: RateLimiter,
  wanted: readonly WantedPermit[],
  apiId: string,
): MaybePromise<TakenPermits> {
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

/** Asks the limits of one mode. The attempts at others stay as they are. Loops, because most keys with names come by here. */
function tryEach(
  limiter: RateLimiter,
  wanted: readonly WantedPermit[],
  apiId: string,
  mode: RateLimit["mode"],
  before: readonly Attempt[],
): MaybePromise<readonly Attempt[]> {
  const attempts: MaybePromise<Attempt>[] = [];
  for (let i = 0; i < wanted.length; i++) {
    const each = wanted[i] as WantedPermit;
    attempts.push(each.cost > 0 && each.rule.mode === mode ? tryTake(limiter, each, apiId) : before[i]);
  }
  return allOf(attempts);
}

/** A failure is a value, so that what the others have taken can be given back. */
function tryTake(limiter: RateLimiter, { subject, rule, cost }: WantedPermit, apiId: string): MaybePromise<Attempt> {
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
  wanted: readonly WantedPermit[],
  attempts: readonly Attempt[],
): MaybePromise<TakenPermits> {
  const permits = attempts as readonly (Permit | undefined)[];
  if (!permits.includes(undefined)) return new Admitted(permits, permits as readonly Permit[]);
  const states = wanted.map(({ subject, rule }, i) => permits[i] ?? limiter.peek(subject, rule));
  return andThen(allOf(states), (known) => new Admitted(permits, known));
}

/** A permit tells the state of its limit. Undefined for a limit that nothing was taken from. */
class Admitted implements TakenPermits {
  readonly outcome = "admitted";
  readonly refusedBy = -1;
  readonly permits: readonly (Permit | undefined)[];
  readonly states: readonly RateLimitState[];

  constructor(permits: readonly (Permit | undefined)[], states: readonly RateLimitState[]) {
    this.permits = permits;
    this.states = states;
  }

  commit(): void {
    for (const permit of this.permits) permit?.commit();
  }

  release(): MaybePromise<readonly RateLimitState[]> {
    return allOf(this.states.map((state, i) => this.permits[i]?.release() ?? state));
  }
}

/** Gives back what was taken. */
function giveUp(
  limiter: RateLimiter,
  wanted: readonly WantedPermit[],
  attempts: readonly Attempt[],
  outcome: Exclude<Outcome, "admitted">,
): MaybePromise<TakenPermits> {
  const stateOf = (attempt: Attempt, i: number): MaybePromise<RateLimitState> => {
    if (attempt?.outcome === "failed" || attempt?.outcome === "missing") return unknownState;
    if (attempt?.outcome === "limited") return attempt;
    const { subject, rule } = wanted[i] as WantedPermit;
    return attempt?.release() ?? limiter.peek(subject, rule);
  };
  return andThen(allOf(attempts.map(stateOf)), (states) => {
    if (outcome === "failed") throw attempts.find((attempt) => attempt instanceof Failure)?.error;
    // Of a limit that was not asked, its state tells. One that was asked and gave its permits is no reason.
    const refuses = ({ cost }: WantedPermit, i: number) =>
      attempts[i] === undefined ? cost > (states[i] as RateLimitState).remaining : attempts[i].outcome === "limited";
    const refusedBy = outcome === "limited" ? wanted.findIndex(refuses) : -1;
    return { outcome, states, refusedBy, commit() {}, release: () => states };
  });
}

const unknownState: RateLimitState = { limit: 0, remaining: 0, resetMs: 0 };
