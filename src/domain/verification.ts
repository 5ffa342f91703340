import type { Key } from "./key.ts";

/** What a caller learns. A refusal is a statement about the key, never about the service. */
export type Verdict =
  // Nothing is told of a key that does not exist or belongs to another API.
  | { readonly code: "NOT_FOUND" | "FORBIDDEN" }
  | {
      readonly code: "VALID" | "DISABLED" | "EXPIRED" | "USAGE_EXCEEDED";
      readonly key: Key;
      readonly remaining: number | undefined;
    };

/** What the ledger says of one use. */
export type Spend =
  | { readonly outcome: "spent"; readonly remaining: number }
  | { readonly outcome: "exhausted"; readonly remaining: number }
  /** The ledger has no such counter: the key was deleted after it was looked up. */
  | { readonly outcome: "missing" };

export type Plan =
  | { readonly next: "answer"; readonly verdict: Verdict }
  /** All that is left to find out is whether the counter has a use left. */
  | { readonly next: "spend"; readonly key: Key };

/** Everything that can be decided without a counter. What a caller may not know of, it learns nothing about. */
export function planVerification(key: Key | undefined, request: { apiId: string | undefined; nowMs: number }): Plan {
  if (key === undefined) return answer({ code: "NOT_FOUND" });
  if (request.apiId !== undefined && request.apiId !== key.apiId) return answer({ code: "FORBIDDEN" });
  const remaining = key.counter?.remaining;
  if (!key.enabled) return answer({ code: "DISABLED", key, remaining });
  if (key.expiresAtMs !== undefined && key.expiresAtMs <= request.nowMs) {
    return answer({ code: "EXPIRED", key, remaining });
  }
  return key.counter === undefined ? answer({ code: "VALID", key, remaining }) : { next: "spend", key };
}

/** The verdict on a key whose use has been settled. */
export function decideSpend(key: Key, spend: Spend): Verdict {
  if (spend.outcome === "missing") return { code: "NOT_FOUND" };
  return { code: spend.outcome === "spent" ? "VALID" : "USAGE_EXCEEDED", key, remaining: spend.remaining };
}

function answer(verdict: Verdict): Plan {
  return { next: "answer", verdict };
}
