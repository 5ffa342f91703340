import type { Ambient } from "../ambient/ambient.ts";
import { sha256 } from "../ambient/crypto.ts";
import type { Key } from "../domain/key.ts";
import type { PlannedRequest } from "../domain/key-checks.ts";
import { isWellFormedKey } from "../domain/key-format.ts";
import { andThen, type MaybePromise } from "../domain/maybe-promise.ts";
import type { Owner } from "../domain/owner.ts";
import type { RefusalReason } from "../domain/refusal-reason.ts";
import type { Secret } from "../domain/secret.ts";
import { toChargeError, Unavailable } from "../domain/unavailable.ts";
import {
  countersOf,
  noteSpend,
  notFound,
  type Plan,
  planVerification,
  type Verdict,
  verdictOn,
} from "../domain/verification.ts";
import type { RateLimiter } from "../ratelimit/limiter.ts";
import type { KeyLookup, OwnersOfKeys } from "../store/key-lookup.ts";
import type { UsageLedger } from "../store/usage-ledger.ts";
import type { TakenLimits } from "./take-all.ts";
import { peekLimits, takeLimits } from "./take-limits.ts";

export interface VerifyKeyRequest extends PlannedRequest {
  readonly key: Secret;
}

export type VerifyKey = (request: VerifyKeyRequest) => MaybePromise<Verdict>;

export interface VerifyKeyDeps extends Pick<Ambient, "clock"> {
  readonly keys: KeyLookup;
  readonly owners: OwnersOfKeys;
  readonly limiter: RateLimiter;
  readonly usage: UsageLedger;
}

/**
 * The path of one verification. A refusal is a verdict; failing to decide is an exception, so that an outage is never
 * reported as an invalid key, nor as a valid one. A cached key without a counter is decided synchronously.
 */
export function createVerifyKey(deps: VerifyKeyDeps): VerifyKey {
  const { keys, owners, limiter, usage, clock } = deps;

  return function verifyKey(request) {
    const text = request.key.reveal();
    if (!isWellFormedKey(text)) return verifyForeign(text, request);

    const digest = sha256(text);
    const question = { digest, request, isFresh: false, isForeign: false };
    return andThen(keys.findByDigest(digest), (found) => decide(found, question));
  };

  /**
   * Garbage ends here, without a look at the store: a text with a wrong checksum was never issued. Only where keys were
   * imported it may be one of those.
   */
  function verifyForeign(text: string, request: PlannedRequest): MaybePromise<Verdict> {
    if (keys.hasImportedKeys === false) return notFound;
    const digest = sha256(text);
    const question = { digest, request, isFresh: false, isForeign: true };
    return andThen(keys.findByDigest(digest, { foreign: true }), (found) => decide(found, question));
  }

  function decide(found: Key | undefined, question: Lookup): MaybePromise<Verdict> {
    // What a key shares with others is known apart from it. Most keys share nothing.
    if (found?.ownerId === undefined) return decideFor(found, undefined, question);
    return andThen(owners.ownerOf(found, question.isFresh ? fresh : undefined), (owner) =>
      decideFor(found, owner, question),
    );
  }

  function decideFor(found: Key | undefined, owner: Owner | undefined, question: Lookup): MaybePromise<Verdict> {
    const plan = planVerification(found, owner, question.request, clock.nowMs());
    if (plan.next === "answer") return plan.verdict;
    if (plan.next === "refuse")
      return andThen(peekLimits(limiter, plan), (states) => verdictOn(plan, plan.reason, states));

    return andThen(takeLimits(limiter, plan, plan.costs), (taken) =>
      taken.outcome === "missing" ? decideFresh(question) : decideWithLimits(taken, plan, question),
    );
  }

  /**
   * The ledger has no such window or counter, so what is cached of the key or its owner is out of date: one of them was
   * deleted, or has lost its limit or its counter. Both are read again and decided again, once. If they have changed again by
   * then, only a key that is gone is refused.
   */
  async function decideFresh({ digest, request, isFresh, isForeign }: Lookup): Promise<Verdict> {
    const found = await keys.findByDigest(digest, { fresh: true, ...(isForeign && { foreign: true }) });
    if (isFresh && found !== undefined) throw new Unavailable("the key is being changed", { affectsOneKeyOnly: true });
    return decide(found, { digest, request, isFresh: true, isForeign });
  }

  function decideWithLimits(taken: TakenLimits, plan: Counted, question: Lookup): MaybePromise<Verdict> {
    if (taken.outcome === "limited") return verdictOn(plan, taken.reason, taken);
    const counters = countersOf(plan);
    if (counters === undefined || plan.costs.counter === 0) {
      taken.commit();
      return verdictOn(plan, undefined, taken);
    }
    return usage.spend(counters, plan.costs.counter).then(
      (spend) =>
        spend.outcome === "missing"
          ? releaseAndDecideFresh(taken, question)
          : decideAfterSpend(taken, plan, noteSpend(plan, spend, clock.nowMs())),
      (error: unknown) => releaseAndThrow(taken, error),
    );
  }

  async function releaseAndDecideFresh(taken: TakenLimits, question: Lookup): Promise<Verdict> {
    await taken.release();
    return decideFresh(question);
  }
}

function decideAfterSpend(taken: TakenLimits, plan: Counted, reason: RefusalReason | undefined): MaybePromise<Verdict> {
  const verdict = verdictOn(plan, reason, taken);
  if (reason !== undefined) {
    // With the balances that refused: while permits are given back, others may spend or change them.
    return andThen(taken.release(), (limits) => ({ ...verdict, limits }));
  }
  taken.commit();
  return verdict;
}

const fresh = { fresh: true };

type Counted = Extract<Plan, { next: "count" }>;

/** The request, and whether the key was already read again from the store. */
interface Lookup {
  readonly digest: string;
  readonly request: PlannedRequest;
  readonly isFresh: boolean;
  /** Whether the text is one that this service cannot have made. */
  readonly isForeign: boolean;
}

/** It is not known whether the use was spent, and the caller gets 503. So nothing of the limits was used. */
async function releaseAndThrow(taken: TakenLimits, error: unknown): Promise<never> {
  await taken.release();
  throw toChargeError(error);
}
