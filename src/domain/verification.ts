import { isExpired } from "./expiry.ts";
import type { Key } from "./key.ts";
import type { RateLimitState } from "./rate-limit.ts";
import { includesApi } from "./root-key.ts";

/** The answer to a verification. A refusal is a statement about the key, never about the service. */
export type Verdict =
  // Nothing is revealed about a key that does not exist or belongs to another API.
  { readonly code: "NOT_FOUND" | "FORBIDDEN" } | KeyVerdict;

export interface KeyVerdict {
  readonly code: "VALID" | "DISABLED" | "EXPIRED" | "RATE_LIMITED" | "USAGE_EXCEEDED";
  readonly key: Key;
  /** The balance of the counter, if there is one. */
  readonly remaining: number | undefined;
  /** Where the rate limit stands, if there is one. */
  readonly rateLimit: RateLimitState | undefined;
}

/** The ledger's answer to one caller. */
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
  | { readonly next: "answer"; readonly code: "NOT_FOUND" | "FORBIDDEN" }
  | { readonly next: "refuse"; readonly code: "DISABLED" | "EXPIRED"; readonly key: Key }
  /** What remains are the rate limit and the counter, in this order. */
  | { readonly next: "count"; readonly key: Key };

export interface PlannedRequest {
  /** The API that asks; undefined: it is not checked. */
  readonly apiId: string | undefined;
  /**
   * The APIs that the caller's root key is limited to. Keys of others do not exist for it. Absent: all, or the caller needs
   * no root key.
   */
  readonly apiIds?: readonly string[] | undefined;
}

/** Everything that can be decided without a counter. A caller of another API learns nothing about the key. */
export function planVerification(key: Key | undefined, request: PlannedRequest, nowMs: number): Plan {
  // A secret that has ended, and a key that the caller may not know of, are answered like those that never were.
  if (key === undefined || isExpired(key.secretExpiresAtMs, nowMs) || !includesApi(request.apiIds, key.apiId))
    return { next: "answer", code: "NOT_FOUND" };
  if (request.apiId !== undefined && request.apiId !== key.apiId) return { next: "answer", code: "FORBIDDEN" };
  if (!key.enabled) return { next: "refuse", code: "DISABLED", key };
  if (isExpired(key.expiresAtMs, nowMs)) return { next: "refuse", code: "EXPIRED", key };
  return { next: "count", key };
}

/** The verdict on a key after the ledger has answered. */
export function decideSpend(key: Key, spend: CountedSpend, rateLimit: RateLimitState | undefined): Verdict {
  return { code: spend.outcome === "spent" ? "VALID" : "USAGE_EXCEEDED", key, remaining: spend.remaining, rateLimit };
}
