import type { Ambient } from "../ambient/ambient.ts";
import { type Costs, costOf, costsOfOne } from "../domain/costs.ts";
import { type Explanation, explainVerification, type Inspected, type InspectedLimit } from "../domain/explanation.ts";
import { keyOf, type StoredKey } from "../domain/key.ts";
import type { PlannedRequest } from "../domain/key-checks.ts";
import { ownerOf } from "../domain/owner.ts";
import { nextBoundaryMs } from "../domain/refill-calendar.ts";
import type { Holder } from "../domain/refusal-reason.ts";
import type { Secret } from "../domain/secret.ts";
import { Unavailable } from "../domain/unavailable.ts";
import type { UsageCounter } from "../domain/usage.ts";
import type { Holders } from "../domain/verification.ts";
import type { InspectingLimiter } from "../ratelimit/limiter.ts";
import type { Management } from "../store/management.ts";
import { getKey } from "./get-key.ts";
import { limitsOf } from "./take-limits.ts";

export interface ExplainKeyRequest extends PlannedRequest {
  readonly by: { readonly keyId: string } | { readonly key: Secret };
}

export interface ExplainKeyDeps extends Pick<Ambient, "clock"> {
  readonly limiter: InspectingLimiter;
}

/**
 * Explains how a verification would be decided, and takes nothing. Key, owner and counters are those of the store, and strict
 * limits are inspected in the ledger, so that it is right on a replica that has never seen the key. Throws `CostTooHigh`.
 */
export async function explainKey(
  management: Pick<Management, "read">,
  { by, ...request }: ExplainKeyRequest,
  { limiter, clock }: ExplainKeyDeps,
): Promise<Explanation> {
  for (let reads = 0; reads < readsMax; reads++) {
    const { key, owner, counters } = await readHolders(management, await getKey(management, by, { clock }));
    const inspected = key && (await inspect(limiter, { key, owner }, counters, request.costs ?? costsOfOne));
    if (key === undefined || inspected !== undefined)
      return explainVerification(key, owner, request, inspected ?? nothing, clock.nowMs());
  }
  throw new Unavailable("the key is being changed", { affectsOneKeyOnly: true });
}

/** A key or owner that has lost a limit after it was read is read again, once. */
const readsMax = 2;
const nothing: Inspected = { limits: [], counters: [] };

async function readHolders(
  management: Pick<Management, "read">,
  stored: StoredKey | undefined,
): Promise<Partial<Holders> & { readonly counters: Counters }> {
  if (stored === undefined) return { counters: {} };
  const key = keyOf(stored);
  const owner = key.ownerId === undefined ? undefined : await management.read({ kind: "ownerOfKey", keyId: key.id });
  return { key, owner: owner && ownerOf(owner), counters: { key: stored.counter, owner: owner?.counter } };
}

/** With the refills that are due, and when the next one is. */
type Counters = { readonly [Of in Holder]?: UsageCounter | undefined };

/** Undefined: one of the limits no longer exists. */
async function inspect(
  limiter: InspectingLimiter,
  holders: Holders,
  stored: Counters,
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
    if (counter === undefined) return [];
    const { remaining, refill } = counter;
    const nextRefillMs = refill && nextBoundaryMs(refill.interval, refill.refilledThroughMs);
    return [{ of, remaining, nextRefillMs, cost: costs.counter }];
  });
  return { limits, counters };
}
