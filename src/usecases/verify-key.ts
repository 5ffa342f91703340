import type { Clock } from "../ambient/clock.ts";
import { sha256 } from "../ambient/crypto.ts";
import type { Key } from "../domain/key.ts";
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

export type VerifyKey = (request: VerifyKeyRequest) => Promise<Verdict>;

/**
 * The path of one verification. A refusal is a verdict; failing to decide is an exception, so that an outage is never
 * reported as an invalid key, nor as a valid one.
 */
export function createVerifyKey(deps: {
  keys: Pick<KeyStore, "findByDigest">;
  limiter: RateLimiter;
  usage: UsageLedger;
  clock: Clock;
}): VerifyKey {
  const { keys, limiter, usage, clock } = deps;

  return async function verifyKey({ key: presented, apiId }) {
    // Garbage ends here: a text whose checksum is wrong was never issued, and costs no look at the store.
    if (!isWellFormedKey(presented.reveal())) return { code: "NOT_FOUND" };

    const digest = sha256(presented.reveal());
    const verdict = await decide(await keys.findByDigest(digest), apiId);
    if (verdict !== undefined) return verdict;
    // The ledger knows the key no more, or not with such a limit: what is remembered of it is out of date.
    return (await decide(await keys.findByDigest(digest, { anew: true }), apiId)) ?? { code: "NOT_FOUND" };
  };

  /** Undefined when the key is another one by now than the one that was found. */
  async function decide(found: Key | undefined, apiId: string | undefined): Promise<Verdict | undefined> {
    const plan = planVerification(found, { apiId, nowMs: clock.nowMs() });
    if (plan.next === "answer") return { code: plan.code };
    const { key } = plan;
    if (plan.next === "refuse") return verdictOn(plan.code, key, key.rateLimit && limiter.look(key.id, key.rateLimit));

    const taking = key.rateLimit && limiter.take(key.id, key.rateLimit);
    const permit = taking instanceof Promise ? await taking : taking;
    if (permit?.outcome === "missing") return undefined;
    if (permit?.outcome === "limited") return verdictOn("RATE_LIMITED", key, permit);
    if (key.counter === undefined) {
      permit?.keep();
      return verdictOn("VALID", key, permit);
    }
    const spend = await spendUnder(permit, key);
    if (spend.outcome !== "missing") key.counter.remaining = spend.remaining;
    if (spend.outcome === "spent") permit?.keep();
    return decideSpend(key, spend, spend.outcome === "spent" ? permit : permit?.giveBack());
  }

  /** Nobody was let through by a use that is not known to have been spent: its permit goes back. */
  async function spendUnder(permit: Permit | undefined, key: Key): Promise<Spend> {
    try {
      return await usage.spend(key.id);
    } catch (error) {
      permit?.giveBack();
      throw error;
    }
  }
}

function verdictOn(code: KeyVerdict["code"], key: Key, rateLimit: RateLimitState | undefined): KeyVerdict {
  return { code, key, remaining: key.counter?.remaining, rateLimit };
}
