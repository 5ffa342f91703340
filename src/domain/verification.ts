import { isExpired } from "./expiry.ts";
import type { Key } from "./key.ts";
import type { RateLimitState } from "./rate-limit.ts";

/** What a caller learns. A refusal is a statement about the key, never about the service. */
export type Verdict =
  // Nothing is told of a key that does not exist or belongs to another API.
  { readonly code: "NOT_FOUND" | "FORBIDDEN" } | KeyVerdict;

export interface KeyVerdict {
  readonly code: "VALID" | "DISABLED" | "EXPIRED" | "RATE_LIMITED" | "USAGE_EXCEEDED";
  readonly key: Key;
  /** The balance of the counter, if there is one. */
  readonly remaining: number | undefined;
  /** Where the rate limit stands, if there is one. */
  readonly rateLimit: RateLimitState | undefined;
}

/** What the ledger says of one use. */
export type Spend =
  | { readonly outcome: "spent"; readonly remaining: number }
  | { readonly outcome: "exhausted"; readonly remaining: number }
  /** The ledger has no such counter: the key was deleted after it was looked up. */
  | { readonly outcome: "missing" };

export type Plan =
  | { readonly next: "answer"; readonly code: "NOT_FOUND" | "FORBIDDEN" }
  | { readonly next: "refuse"; readonly code: "DISABLED" | "EXPIRED"; readonly key: Key }
  /** All that is left to find out is whether its rate limit and its counter let it pass, in this order. */
  | { readonly next: "count"; readonly key: Key };

/** Everything that can be decided without a counter. What a caller may not know of, it learns nothing about. */
export function planVerification(key: Key | undefined, request: { apiId: string | undefined; nowMs: number }): Plan {
  if (key === undefined) return { next: "answer", code: "NOT_FOUND" };
  if (request.apiId !== undefined && request.apiId !== key.apiId) return { next: "answer", code: "FORBIDDEN" };
  if (!key.enabled) return { next: "refuse", code: "DISABLED", key };
  if (isExpired(key.expiresAtMs, request.nowMs)) return { next: "refuse", code: "EXPIRED", key };
  return { next: "count", key };
}

/** The verdict on a key whose use has been settled. */
export function decideSpend(key: Key, spend: Spend, rateLimit: RateLimitState | undefined): Verdict {
  if (spend.outcome === "missing") return { code: "NOT_FOUND" };
  return { code: spend.outcome === "spent" ? "VALID" : "USAGE_EXCEEDED", key, remaining: spend.remaining, rateLimit };
}
