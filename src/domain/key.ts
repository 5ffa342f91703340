import type { ChangesOf, PropertiesOf, Stored, VerifiedOf } from "./fields.ts";
import { toIpRanges } from "./ip-allow.ts";
import { limitsOfKey } from "./limits.ts";
import type { RefillInterval } from "./refill-calendar.ts";
import type { KeyFields } from "./resources.ts";
import type { UsageCounter } from "./usage.ts";

/** What a verification needs to know of a key. The secret is not part of it. */
export interface Key extends VerifiedOf<KeyFields> {
  readonly id: string;
  readonly apiId: string;
  /** Whether there was a record of the owner when the key was looked up: only then it shares anything with other keys. */
  readonly hasOwnerRecord: boolean;
  /** Present if the key has a usage counter. Only the ledger knows the exact count. */
  readonly counter: LastKnownBalance | undefined;
  /**
   * When the secret that it was found by ends. Undefined for the newest one, which does not end before the key does. It is
   * part of a cached key, so every replica ends the secret at that moment without a message.
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
export interface StoredKey extends Omit<PropertiesOf<KeyFields>, "refill">, Stored {
  readonly apiId: string;
  /** The first characters of the newest secret: safe to show and to log. */
  readonly start: string;
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

/** What a verification needs to know of a stored key, whichever of its secrets the caller has. */
export function keyOf({ rateLimits, ipAllow, counter, ...stored }: StoredKey): Key {
  return {
    ...stored,
    rateLimits: rateLimits && limitsOfKey(stored.id, rateLimits),
    ipAllow: ipAllow && toIpRanges(ipAllow),
    counter: counter && lastKnownBalance(counter),
    secretExpiresAtMs: undefined,
    // Its owner is read apart.
    hasOwnerRecord: false,
  };
}

/** What a caller gives a new key. Later only the ledger changes its counter. */
export interface KeyProperties extends PropertiesOf<KeyFields> {
  /** The first value of its counter; undefined: it has none. */
  readonly remaining: number | undefined;
}

/** A key to be stored. */
export interface NewKey extends KeyProperties {
  readonly id: string;
  readonly apiId: string;
  /** The first characters of the secret: safe to show and to log. */
  readonly start: string;
  readonly createdAtMs: number;
  readonly secretDigest: string;
}

export type KeyFieldChanges = ChangesOf<KeyFields>;
