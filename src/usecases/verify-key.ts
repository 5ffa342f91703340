import type { Ambient } from "../ambient/ambient.ts";
import { sha256 } from "../ambient/crypto.ts";
import { type AtOnce, goOn } from "../domain/at-once.ts";
import type { BalanceSeen, Key } from "../domain/key.ts";
import { isWellFormedKey } from "../domain/key-format.ts";
import type { RateLimitState } from "../domain/rate-limit.ts";
import type { Secret } from "../domain/secret.ts";
import { decideSpend, type KeyVerdict, planVerification, type Spend, type Verdict } from "../domain/verification.ts";
import type { Permit, RateLimiter } from "../ratelimit/limiter.ts";
import type { KeyStore } from "../store/key-store.ts";
import type { UsageLedger } from "../store/usage-ledger.ts";

export interface VerifyKeyRequest {
  readonly key: Secret;
  readonly apiId: string | undefined;
}

export type VerifyKey = (request: VerifyKeyRequest) => AtOnce<Verdict>;

export interface VerifyKeyDeps extends Pick<Ambient, "clock"> {
  readonly keys: Pick<KeyStore, "findByDigest">;
  readonly limiter: RateLimiter;
  readonly usage: UsageLedger;
}

/**
 * The path of one verification. A refusal is a verdict; failing to decide is an exception, so that an outage is never
 * reported as an invalid key, nor as a valid one. A cached key without a counter is decided synchronously.
 */
export function createVerifyKey(deps: VerifyKeyDeps): VerifyKey {
  const { keys, limiter, usage, clock } = deps;

  return function verifyKey({ key: presented, apiId }) {
    const text = presented.reveal();
    // Garbage ends here: a text whose checksum is wrong was never issued, and costs no look at the store.
    if (!isWellFormedKey(text)) return { code: "NOT_FOUND" };

    const digest = sha256(text);
    const question = { digest, apiId, isAnew: false };
    return goOn(keys.findByDigest(digest), (found) => decide(found, question));
  };

  function decide(found: Key | undefined, question: Question): AtOnce<Verdict> {
    const plan = planVerification(found, { apiId: question.apiId, nowMs: clock.nowMs() });
    if (plan.next === "answer") return { code: plan.code };
    const { key } = plan;
    if (plan.next === "refuse") {
      const looked = key.rateLimit && limiter.look(key.id, key.rateLimit);
      return goOn(looked, (state) => verdictOn(plan.code, key, state));
    }

    if (key.rateLimit === undefined) return decideUnder(undefined, key);
    const decideBy = (permit: Permit) =>
      permit.outcome === "missing" ? decideAnew(question) : decideUnder(permit, key);
    return goOn(limiter.take(key.id, key.rateLimit), decideBy);
  }

  /** The ledger does not know the key, or not with this limit: the cached key is out of date. */
  async function decideAnew({ digest, apiId, isAnew }: Question): Promise<Verdict> {
    if (isAnew) return { code: "NOT_FOUND" };
    return decide(await keys.findByDigest(digest, { anew: true }), { digest, apiId, isAnew: true });
  }

  function decideUnder(permit: Permit | undefined, key: Key): AtOnce<Verdict> {
    if (permit?.outcome === "limited") return verdictOn("RATE_LIMITED", key, permit);
    const { counter } = key;
    if (counter === undefined) {
      permit?.keep();
      return verdictOn("VALID", key, permit);
    }
    return usage.spend(key.id).then(
      (spend) => decideCounted(permit, key, counter, spend),
      (error: unknown) => giveBackAndThrow(permit, error),
    );
  }

  function decideCounted(permit: Permit | undefined, key: Key, counter: BalanceSeen, spend: Spend): AtOnce<Verdict> {
    if (spend.outcome !== "missing") counter.remaining = spend.remaining;
    if (spend.outcome !== "spent") return goOn(permit?.giveBack(), (state) => decideSpend(key, spend, state));
    permit?.keep();
    return decideSpend(key, spend, permit);
  }
}

/** The request, and whether the key was already read again from the store. */
interface Question {
  readonly digest: string;
  readonly apiId: string | undefined;
  readonly isAnew: boolean;
}

/** The use is not known to have been spent, so the caller was not let through: the permit is given back. */
async function giveBackAndThrow(permit: Permit | undefined, error: unknown): Promise<never> {
  await permit?.giveBack();
  throw error;
}

function verdictOn(code: KeyVerdict["code"], key: Key, rateLimit: RateLimitState | undefined): KeyVerdict {
  return { code, key, remaining: key.counter?.remaining, rateLimit };
}
