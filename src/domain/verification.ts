import { type Costs, checkCosts, costsOfOne } from "./costs.ts";
import { isExpired } from "./expiry.ts";
import type { Key, LastKnownBalance } from "./key.ts";
import { firstRefusal, type PlannedRequest } from "./key-checks.ts";
import type { Owner } from "./owner.ts";
import type { RateLimitState } from "./rate-limit.ts";
import { nextBoundaryMs } from "./refill-calendar.ts";
import { codeOfRefusal, type RefusalCode, type RefusalReason } from "./refusal-reason.ts";
import { includesApi } from "./root-key.ts";
import { counterOfOwner } from "./subject.ts";

/** The answer to a verification. A refusal is a statement about the key, never about the service. */
export type Verdict =
  // Nothing is revealed about a key that does not exist or belongs to another API.
  | { readonly code: "NOT_FOUND"; readonly reason?: undefined }
  | { readonly code: "FORBIDDEN"; readonly reason: RefusalReason }
  | KeyVerdict;

export interface KeyVerdict {
  readonly code: "VALID" | RefusalCode;
  readonly key: Key;
  /** The record of its owner, if there is one. */
  readonly owner: Owner | undefined;
  /** The balance of the key's counter, if there is one. */
  readonly remaining: number | undefined;
  /** The balance of the owner's counter, if there is one. */
  readonly ownerRemaining: number | undefined;
  /** Where its limits and those of its owner stand. */
  readonly limits: LimitStates;
  /** Why it was refused; undefined: it was not. */
  readonly reason: RefusalReason | undefined;
}

/** Where the limits of a key and of its owner stand. */
export interface LimitStates {
  /** The one without a name; undefined: there is none. */
  readonly rateLimit: RateLimitState | undefined;
  /** Those with names; undefined: there are none. */
  readonly rateLimits: readonly NamedLimitState[] | undefined;
  /** Those of the owner; undefined: there are none. */
  readonly ownerRateLimits: readonly NamedLimitState[] | undefined;
}

export interface NamedLimitState {
  readonly name: string;
  readonly durationMs: number;
  readonly state: RateLimitState;
}

export const noLimitStates: LimitStates = {
  rateLimit: undefined,
  rateLimits: undefined,
  ownerRateLimits: undefined,
};

/** The answer of the ledger to one caller. */
export type Spend =
  | CountedSpend
  /**
   * The ledger lacks one of the counters, and nothing was taken from the other: it was removed, or its key or owner was
   * deleted, after the key was looked up.
   */
  | { readonly outcome: "missing" };

export interface CountedSpend {
  readonly outcome: "spent" | "exhausted";
  /** The balance of the first counter afterwards. */
  readonly remaining: number;
  /** The balance of the second counter, which others share, afterwards. Absent if there is none. */
  readonly sharedRemaining?: number;
  /** Only if there are two counters and the outcome is `exhausted`: the first of them that could not pay. */
  readonly lacking?: "own" | "shared";
}

export type Plan =
  | { readonly next: "answer"; readonly verdict: Verdict }
  | ({ readonly next: "refuse"; readonly reason: RefusalReason } & LimitHolders)
  /** What remains are limits and counters, in this order. */
  | ({ readonly next: "count"; readonly costs: Costs } & LimitHolders);

/** Who has the limits and counters of one verification. */
export interface LimitHolders {
  readonly key: Key;
  /** The record of its owner; undefined: the key shares nothing. */
  readonly owner: Owner | undefined;
}

/**
 * Everything that can be decided without a counter, in the order of the contract. A caller of another API learns nothing
 * about the key. Throws `CostTooHigh`.
 */
export function planVerification(
  key: Key | undefined,
  owner: Owner | undefined,
  request: PlannedRequest,
  nowMs: number,
): Plan {
  // A secret that has ended, and a key that the caller may not know of, are answered like those that never were.
  if (key === undefined || isExpired(key.secretExpiresAtMs, nowMs) || !includesApi(request.apiIds, key.apiId))
    return { next: "answer", verdict: notFound };
  const reason = firstRefusal(key, owner, request, nowMs);
  if (reason !== undefined)
    return reason.check === "api" ? { next: "answer", verdict: ofAnotherApi } : { next: "refuse", reason, key, owner };
  const { costs = costsOfOne } = request;
  if (key.costMax !== undefined) checkCosts(costs, key.costMax);
  return { next: "count", key, owner, costs };
}

export const notFound: Verdict = { code: "NOT_FOUND" };
const ofAnotherApi: Verdict = { code: "FORBIDDEN", reason: { check: "api" } };

/** The verdict on a key, with the balances as last known; without a reason it is valid. */
export function verdictOn(
  { key, owner }: LimitHolders,
  reason: RefusalReason | undefined,
  limits: LimitStates,
): KeyVerdict {
  return {
    code: reason === undefined ? "VALID" : codeOfRefusal(reason),
    key,
    owner,
    remaining: key.counter?.remaining,
    ownerRemaining: owner?.counter?.remaining,
    limits,
    reason,
  };
}

/** The counters that a verification is charged on, the key's own first; undefined: there is none. */
export function countersOf({ key, owner }: LimitHolders): readonly [string] | readonly [string, string] | undefined {
  const shared = owner?.counter && counterOfOwner(owner.id);
  if (key.counter === undefined) return shared === undefined ? undefined : [shared];
  return shared === undefined ? [key.id] : [key.id, shared];
}

/** Why the ledger has not charged the counters; undefined if it has. Notes the balances that it has answered. */
export function noteSpend({ key, owner }: LimitHolders, spend: CountedSpend, nowMs: number): RefusalReason | undefined {
  note(key.counter ?? owner?.counter, spend.remaining);
  if (key.counter !== undefined) note(owner?.counter, spend.sharedRemaining);
  if (spend.outcome === "spent") return undefined;
  const of = key.counter === undefined || spend.lacking === "shared" ? "owner" : "key";
  const interval = (of === "owner" ? owner : key)?.counter?.refillInterval;
  // The ledger has applied every refill that was due.
  return { check: "counter", of, nextRefillMs: interval && nextBoundaryMs(interval, nowMs) };
}

function note(counter: LastKnownBalance | undefined, remaining: number | undefined): void {
  if (counter !== undefined && remaining !== undefined) counter.remaining = remaining;
}
