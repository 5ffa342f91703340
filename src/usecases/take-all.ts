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
 * Rejects with `Unavailable` if a limit cannot decide; then nothing is taken either.
 */
export function takeAll(limiter: RateLimiter, wanted: readonly WantedPermit[]): MaybePromise<TakenPermits> {
  const strict = tryEach(limiter, wanted, (each) => each.rule.mode === "strict");
  return andThen(strict, (ofStrict) => {
    const outcome = outcomeOf(ofStrict);
    if (outcome !== "admitted") return giveUp(limiter, wanted, ofStrict, outcome);
    const local = tryEach(limiter, wanted, (each) => each.rule.mode === "local");
    return andThen(local, (ofLocal) => {
      const all = ofStrict.map((attempt, i) => attempt ?? ofLocal[i]);
      const outcome = outcomeOf(all);
      return outcome === "admitted" ? admit(limiter, wanted, all) : giveUp(limiter, wanted, all, outcome);
    });
  });
}

/** What became of one limit; undefined: it was not asked. */
type Attempt = Permit | Failure | undefined;

class Failure {
  readonly outcome = "failed";
  readonly error: unknown;

  constructor(error: unknown) {
    this.error = error;
  }
}

function tryEach(
  limiter: RateLimiter,
  wanted: readonly WantedPermit[],
  isIncluded: (each: WantedPermit) => boolean,
): MaybePromise<readonly Attempt[]> {
  return allOf(wanted.map((each) => (each.cost > 0 && isIncluded(each) ? tryTake(limiter, each) : undefined)));
}

/** A failure is a value, so that what the others have taken can be given back. */
function tryTake(limiter: RateLimiter, { subject, rule, cost }: WantedPermit): MaybePromise<Attempt> {
  try {
    const taken = limiter.take(subject, rule, cost);
    return taken instanceof Promise ? taken.catch((error: unknown) => new Failure(error)) : taken;
  } catch (error) {
    return new Failure(error);
  }
}

function outcomeOf(attempts: readonly Attempt[]): Permit["outcome"] | "failed" {
  return worst.find((outcome) => attempts.some((attempt) => attempt?.outcome === outcome)) ?? "admitted";
}

/** A limit that cannot decide decides for all; a subject that is gone has to be looked up again, whatever the others say. */
const worst = ["failed", "missing", "limited"] as const;

function admit(
  limiter: RateLimiter,
  wanted: readonly WantedPermit[],
  attempts: readonly Attempt[],
): MaybePromise<TakenPermits> {
  const permits = attempts as readonly (Permit | undefined)[];
  return andThen(allOf(wanted.map((each, i) => permits[i] ?? limiter.peek(each.subject, each.rule))), (states) => ({
    outcome: "admitted",
    states,
    refusedBy: -1,
    commit() {
      for (const permit of permits) permit?.commit();
    },
    release: () => allOf(states.map((state, i) => permits[i]?.release() ?? state)),
  }));
}

/** Gives back what was taken. */
function giveUp(
  limiter: RateLimiter,
  wanted: readonly WantedPermit[],
  attempts: readonly Attempt[],
  outcome: Exclude<ReturnType<typeof outcomeOf>, "admitted">,
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
