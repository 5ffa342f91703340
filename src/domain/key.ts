import { type IpRanges, toIpRanges } from "./ip-allow.ts";
import { limitsOfKey, type NamedLimit, type NamedRateLimit } from "./limits.ts";
import type { RateLimit } from "./rate-limit.ts";
import type { RefillInterval } from "./refill-calendar.ts";
import type { RefillRule, UsageCounter } from "./usage.ts";

export type Json = null | boolean | number | string | readonly Json[] | JsonObject;
export type JsonObject = { readonly [name: string]: Json };

/** What a verification needs to know of a key. The secret is not part of it. */
export interface Key {
  readonly id: string;
  readonly apiId: string;
  readonly ownerId: string | undefined;
  /** Whether there was a record of the owner when the key was looked up: only then it shares anything with other keys. */
  readonly hasOwnerRecord: boolean;
  readonly name: string | undefined;
  readonly meta: JsonObject;
  readonly enabled: boolean;
  readonly expiresAtMs: number | undefined;
  readonly rateLimit: RateLimit | undefined;
  /** Its limits with names, at least one; undefined: none. */
  readonly limits: readonly NamedLimit[] | undefined;
  /** The largest cost that a verification can have; undefined: any. */
  readonly costMax: number | undefined;
  /** What its holder may do; undefined: nothing that a verification asks for. */
  readonly permissions: readonly string[] | undefined;
  /** The addresses that it can be used from; undefined: all. */
  readonly ipRanges: IpRanges | undefined;
  /** Present if the key has a usage counter. Only the ledger knows the exact count. */
  readonly counter: LastKnownBalance | undefined;
  /**
   * When the secret that it was found by ends. Undefined for the newest one, which does not end before the key does. It is
   * part of a cached key, so that every replica ends the secret at that moment without being told.
   */
  readonly secretExpiresAtMs: number | undefined;
}

/** The last balance of a counter that this replica has seen. Refusals show it; no decision uses it. */
export interface LastKnownBalance {
  remaining: number;
  /** Undefined: it is not refilled. */
  readonly refillInterval?: RefillInterval | undefined;
}

export function lastKnownBalance({ remaining, refill }: UsageCounter): LastKnownBalance {
  return { remaining, refillInterval: refill?.interval };
}

/** A key with everything that its holders may see. */
export interface StoredKey
  extends Omit<Key, "counter" | "secretExpiresAtMs" | "ipRanges" | "limits" | "hasOwnerRecord"> {
  /** Its limits with names, at least one; undefined: none. */
  readonly rateLimits: readonly NamedRateLimit[] | undefined;
  /** Addresses and ranges as they were given, at least one; undefined: the key can be used from everywhere. */
  readonly ipAllow: readonly string[] | undefined;
  /** The first characters of the newest secret: safe to show and to log. */
  readonly start: string;
  readonly createdAtMs: number;
  /** Of the last change; verifications are none. */
  readonly updatedAtMs: number;
  /** Counts changes, the creation included. */
  readonly version: number;
  /** With every refill that is due. */
  readonly counter: UsageCounter | undefined;
  /** The newest first. The other one was replaced and has an end, which may be in the past. */
  readonly secrets: readonly StoredSecret[];
}

/** What is known of a secret. */
export interface StoredSecret {
  readonly start: string;
  readonly createdAtMs: number;
  readonly expiresAtMs: number | undefined;
}

/** What a verification needs to know of a stored key, whichever of its secrets it is asked for by. */
export function keyOf({ rateLimits, ipAllow, counter, ...stored }: StoredKey): Key {
  const { id, apiId, ownerId, name, meta, enabled, expiresAtMs, rateLimit, costMax, permissions } = stored;
  return {
    id,
    apiId,
    ownerId,
    name,
    meta,
    enabled,
    expiresAtMs,
    rateLimit,
    limits: rateLimits && limitsOfKey(id, rateLimits),
    costMax,
    permissions,
    ipRanges: ipAllow && toIpRanges(ipAllow),
    counter: counter && lastKnownBalance(counter),
    secretExpiresAtMs: undefined,
    // Its owner is read apart.
    hasOwnerRecord: false,
  };
}

/** A key to be stored, with the first value of its counter. Later only the ledger changes the counter. */
export interface NewKey extends Omit<Key, "counter" | "secretExpiresAtMs" | "ipRanges" | "limits" | "hasOwnerRecord"> {
  /* As of `StoredKey`. */
  readonly rateLimits: readonly NamedRateLimit[] | undefined;
  readonly ipAllow: readonly string[] | undefined;
  /** The first characters of the secret: safe to show and to log. */
  readonly start: string;
  readonly createdAtMs: number;
  readonly secretDigest: string;
  readonly remaining: number | undefined;
  readonly refill: RefillRule | undefined;
}

/** What becomes of the fields of a key that are changed: null removes one, a value sets it. */
export interface KeyFieldChanges {
  readonly ownerId?: string | null | undefined;
  readonly name?: string | null | undefined;
  readonly meta?: JsonObject | undefined;
  readonly enabled?: boolean | undefined;
  readonly expiresAtMs?: number | null | undefined;
  readonly rateLimit?: RateLimit | null | undefined;
  /** All of them. */
  readonly rateLimits?: readonly NamedRateLimit[] | null | undefined;
  readonly costMax?: number | null | undefined;
  readonly refill?: RefillRule | null | undefined;
  readonly permissions?: readonly string[] | null | undefined;
  readonly ipAllow?: readonly string[] | null | undefined;
}
