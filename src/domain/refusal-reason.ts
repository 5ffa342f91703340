/**
 * Which check has refused a verification, and what it has found. The only place where a reason gets its code and its words:
 * for the answer, for explanations and for logs.
 */
export type RefusalReason =
  | { readonly check: "api" }
  /** Whether the key can be used, or all keys of its owner. */
  | { readonly check: "enabled"; readonly of: Holder }
  | { readonly check: "expiry" }
  | { readonly check: "ip"; readonly isTold: boolean }
  /** `missing`: the part of the query that the key does not meet. */
  | { readonly check: "permissions"; readonly missing: string }
  /** `name`: undefined for the limit that has none. */
  | { readonly check: "limit"; readonly of: Holder; readonly name?: string | undefined }
  | { readonly check: "counter"; readonly of: Holder };

/** Whose limit or counter it is. */
export type Holder = "key" | "owner";

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
      return reason.isTold
        ? "the key cannot be used from this address"
        : "the key can be used from some addresses only, and none was told";
    case "permissions":
      return `the key lacks ${reason.missing}`;
    case "limit":
      return `the limit${reason.name === undefined ? "" : ` ${reason.name}`} of ${the(reason.of)} is reached`;
    case "counter":
      return `the counter of ${the(reason.of)} is used up`;
  }
}

function the(holder: Holder): string {
  return holder === "key" ? "the key" : "the key's owner";
}
