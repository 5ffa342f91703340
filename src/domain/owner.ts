import { type JsonObject, type LastKnownBalance, lastKnownBalance } from "./key.ts";
import { limitsOfOwner, type NamedLimit, type NamedRateLimit } from "./limits.ts";
import { includesApi } from "./root-key.ts";
import type { RefillRule, UsageCounter } from "./usage.ts";

/** What a verification needs to know of whoever owns a key: what all its keys share. */
export interface Owner {
  readonly id: string;
  /** False: none of its keys can be used. */
  readonly enabled: boolean;
  /** The APIs of the keys that it concerns; undefined: all. */
  readonly apiIds: readonly string[] | undefined;
  /** Its limits, at least one; undefined: none. */
  readonly limits: readonly NamedLimit[] | undefined;
  /** Present if the owner has a usage counter. Only the ledger knows the exact count. */
  readonly counter: LastKnownBalance | undefined;
}

/** An owner with everything that can be seen of it. */
export interface StoredOwner extends Omit<Owner, "limits" | "counter"> {
  readonly meta: JsonObject;
  /** At least one; undefined: none. */
  readonly rateLimits: readonly NamedRateLimit[] | undefined;
  /** With every refill that is due. */
  readonly counter: UsageCounter | undefined;
  readonly createdAtMs: number;
  /** Of the last change; verifications are none. */
  readonly updatedAtMs: number;
  /** Counts changes, the creation included. */
  readonly version: number;
}

/** What a verification needs to know of a stored owner. */
export function ownerOf({ id, enabled, apiIds, rateLimits, counter }: StoredOwner): Owner {
  return {
    id,
    enabled,
    apiIds,
    limits: rateLimits && limitsOfOwner(id, rateLimits),
    counter: counter && lastKnownBalance(counter),
  };
}

/** An owner to be stored, with the first value of its counter. Later only the ledger changes the counter. */
export interface NewOwner extends Pick<StoredOwner, "id" | "enabled" | "apiIds" | "meta" | "rateLimits"> {
  readonly remaining: number | undefined;
  readonly refill: RefillRule | undefined;
}

/** What becomes of the fields of an owner that are changed: null removes one, a value sets it. */
export interface OwnerFieldChanges {
  readonly meta?: JsonObject | undefined;
  readonly enabled?: boolean | undefined;
  readonly apiIds?: readonly string[] | null | undefined;
  /** All of them. */
  readonly rateLimits?: readonly NamedRateLimit[] | null | undefined;
  readonly refill?: RefillRule | null | undefined;
}

/** Whether what is shared concerns keys of this API. */
export function concernsApi({ apiIds }: Pick<Owner, "apiIds">, apiId: string): boolean {
  return includesApi(apiIds, apiId);
}
