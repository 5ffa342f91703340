import type { Clock } from "../ambient/clock.ts";
import { sha256 } from "../ambient/crypto.ts";
import { isWellFormedKey } from "../domain/key-format.ts";
import type { Secret } from "../domain/secret.ts";
import { decideSpend, planVerification, type Verdict } from "../domain/verification.ts";
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
  usage: UsageLedger;
  clock: Clock;
}): VerifyKey {
  const { keys, usage, clock } = deps;
  return async function verifyKey({ key: presented, apiId }) {
    // Garbage ends here: a text whose checksum is wrong was never issued, and costs no look at the store.
    if (!isWellFormedKey(presented.reveal())) return { code: "NOT_FOUND" };

    const key = await keys.findByDigest(sha256(presented.reveal()));
    const plan = planVerification(key, { apiId, nowMs: clock.nowMs() });
    if (plan.next === "answer") return plan.verdict;

    const spend = await usage.spend(plan.key.id);
    if (spend.outcome !== "missing" && plan.key.counter) plan.key.counter.remaining = spend.remaining;
    return decideSpend(plan.key, spend);
  };
}
