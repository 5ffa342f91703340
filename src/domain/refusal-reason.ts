import type { RateLimit, RateLimitState } from "./rate-limit.ts";

/**
 * Which check has refused a verification, and what it has found. The only place where a reason gets its code and its words:
 * for the answer, for explanations and for logs.
 */
export type RefusalReason =
  | { readonly check: "api" }
  /** Whether the key can be used, or all keys of its owner. */
  | { readonly check: "enabled"; readonly of: Holder }
  | { readonly check: "expiry" }
  | { readonly check: "ip"; readonly isGiven: boolean }
  /** `missing`: the part of the query that the key does not meet. */
  | { readonly check: "permissions"; readonly missing: string }
  /** `name`: undefined for the limit that has none. */
  | { readonly check: "limit"; readonly of: Holder; readonly name?: string | undefined }
  /** `nextRefillMs`: undefined if the counter is not refilled. */
  | { readonly check: "counter"; readonly of: Holder; readonly nextRefillMs?: number | undefined };

/** Whose limit or counter it is. */
export type Holder = "key" | "owner";

/** What one check of a verification has found: `refusal` if it refuses, else it has passed. */
export type VerificationCheck = KeyCheck | LimitCheck | CounterCheck;

/** A check that needs neither a limit nor a counter. */
export interface KeyCheck {
  readonly check: Exclude<RefusalReason["check"], "limit" | "counter">;
  readonly of?: Holder;
  /** Whether there was something to check. If not, it has passed. */
  readonly isNeeded: boolean;
  readonly refusal: RefusalReason | undefined;
}

/** A limit as it is before the cost is taken. */
export interface LimitCheck {
  readonly check: "limit";
  readonly of: Holder;
  /** Undefined: the limit has none. */
  readonly name: string | undefined;
  readonly mode: RateLimit["mode"];
  readonly state: RateLimitState;
  readonly cost: number;
  readonly refusal: RefusalReason | undefined;
}

/** A counter as it is before the cost is taken. */
export interface CounterCheck {
  readonly check: "counter";
  readonly of: Holder;
  readonly remaining: number;
  /** Undefined: it is not refilled. */
  readonly nextRefillMs: number | undefined;
  readonly cost: number;
  readonly refusal: RefusalReason | undefined;
}

export type RefusalCode = (typeof codes)[RefusalReason["check"]];

const codes = {
  api: "FORBIDDEN",
  enabled: "DISABLED",
  expiry: "EXPIRED",
  ip: "FORBIDDEN",
  permissions: "INSUFFICIENT_PERMISSIONS",
  limit: "RATE_LIMITED",
  counter: "USAGE_EXCEEDED",
} as const satisfies Record<RefusalReason["check"], string>;

export function codeOfRefusal({ check }: RefusalReason): RefusalCode {
  return codes[check];
}

/** A sentence for people. It names permissions and limits, never an address or a secret. */
export function phraseRefusal(reason: RefusalReason): string {
  switch (reason.check) {
    case "api":
      return "the key belongs to another API";
    case "enabled":
      return `${the(reason.of)} is disabled`;
    case "expiry":
      return "the key has expired";
    case "ip":
      return reason.isGiven
        ? "the key cannot be used from this address"
        : "the key can be used from some addresses only, and none was told";
    case "permissions":
      return `the key lacks ${reason.missing}`;
    case "limit":
      return `${theLimit(reason)} has not enough left`;
    case "counter":
      return `the counter of ${the(reason.of)} has not enough left`;
  }
}

/** A sentence for people on what a check has found. If it refuses, it begins as the refusal does. */
export function phraseCheck(check: VerificationCheck): string {
  const refusal = check.refusal && phraseRefusal(check.refusal);
  switch (check.check) {
    case "limit": {
      const { state, cost, mode } = check;
      const found = `${state.remaining} of ${state.limit} left, ${cost} needed (${mode})`;
      return `${refusal ?? `${theLimit(check)} suffices`}: ${found}`;
    }
    case "counter": {
      const { of, remaining, cost, nextRefillMs } = check;
      const refill = nextRefillMs === undefined ? "" : `, refilled at ${new Date(nextRefillMs).toISOString()}`;
      return `${refusal ?? `the counter of ${the(of)} suffices`}: ${remaining} left, ${cost} needed${refill}`;
    }
    default:
      return refusal ?? phrasePassed(check);
  }
}

function phrasePassed({ check, of = "key", isNeeded }: KeyCheck): string {
  switch (check) {
    case "api":
      return isNeeded ? "the key belongs to this API" : "no API was told, so that a key of any can be used";
    case "enabled":
      return `${the(of)} is enabled`;
    case "expiry":
      return isNeeded ? "the key has not expired" : "the key does not expire";
    case "ip":
      return isNeeded ? "the key can be used from this address" : "the key can be used from all addresses";
    case "permissions":
      return isNeeded ? "the key has the permissions that were asked for" : "no permissions were asked for";
  }
}

function theLimit({ of, name }: { readonly of: Holder; readonly name?: string | undefined }): string {
  return `the limit${name === undefined ? "" : ` ${name}`} of ${the(of)}`;
}

function the(holder: Holder): string {
  return holder === "key" ? "the key" : "the key's owner";
}
