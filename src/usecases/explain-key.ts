import type { Ambient } from "../ambient/ambient.ts";
import { sha256 } from "../ambient/crypto.ts";
import { type Costs, costOf, costsOfOne } from "../domain/costs.ts";
import {
  type Explanation,
  explainVerification,
  type Inspected,
  type InspectedLimit,
  type StoredHolders,
} from "../domain/explanation.ts";
import type { PlannedRequest } from "../domain/key-checks.ts";
import type { Secret } from "../domain/secret.ts";
import { Unavailable } from "../domain/unavailable.ts";
import type { LimitHolders } from "../domain/verification.ts";
import type { InspectingLimiter } from "../ratelimit/limiter.ts";
import type { ReadHolders } from "../store/root-access.ts";
import { limitsOf } from "./take-limits.ts";

export interface ExplainKeyRequest extends PlannedRequest {
  readonly by: { readonly keyId: string } | { readonly key: Secret };
}

export interface ExplainKeyDeps extends Pick<Ambient, "clock"> {
  readonly limiter: InspectingLimiter;
  readonly readHolders: ReadHolders;
}

/**
 * Explains how a verification would be decided, and takes nothing. Key, owner and counters are those of the store, and strict
 * limits are inspected in the ledger, so that it is right on a replica that has never seen the key. Throws `CostTooHigh`.
 */
export async function explainKey(
  rootKey: Secret,
  { by, ...request }: ExplainKeyRequest,
  { limiter, clock, readHolders }: ExplainKeyDeps,
): Promise<Explanation> {
  const name = "keyId" in by ? by : { digest: sha256(by.key.reveal()) };
  for (let reads = 0; reads < readsMax; reads++) {
    const { key, owner, counters } = await readHolders(rootKey, name);
    const inspected = key && (await inspect(limiter, { key, owner }, counters, request.costs ?? costsOfOne));
    if (key === undefined || inspected !== undefined)
      return explainVerification(key, owner, request, inspected ?? nothing, clock.nowMs());
  }
  throw new Unavailable("the key is being changed", { affectsOneKeyOnly: true });
}

/** A key or owner that has lost a limit after it was read is read again, once. */
const readsMax = 2;
const nothing: Inspected = { limits: [], counters: [] };

/** Undefined: one of the limits no longer exists. */
async function inspect(
  limiter: InspectingLimiter,
  holders: LimitHolders,
  stored: StoredHolders["counters"],
  costs: Costs,
): Promise<Inspected | undefined> {
  const inspecting = limitsOf(holders).map(async ({ of, name, subject, rule }): Promise<InspectedLimit | undefined> => {
    const cost = costOf(costs, name);
    const state = await limiter.inspect(subject, rule, cost);
    return state && { of, name, mode: rule.mode, state, cost };
  });
  const limits = await Promise.all(inspecting);
  if (!limits.every((limit) => limit !== undefined)) return undefined;
  const counters = (["key", "owner"] as const).flatMap((of) => {
    const counter = stored[of];
    return counter === undefined ? [] : [{ of, ...counter, cost: costs.counter }];
  });
  return { limits, counters };
}
