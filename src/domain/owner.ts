import type { PropertiesOf, Stored, VerifiedOf } from "./fields.ts";
import { type LastKnownBalance, lastKnownBalance } from "./key.ts";
import { limitsOfOwner } from "./limits.ts";
import type { OwnerFields } from "./resources.ts";
import { includesApi } from "./root-key.ts";
import type { UsageCounter } from "./usage.ts";

/** What a verification needs to know of whoever owns a key: what all its keys share. */
export interface Owner extends VerifiedOf<OwnerFields> {
  readonly id: string;
  /** Present if the owner has a usage counter. Only the ledger knows the exact count. */
  readonly counter: LastKnownBalance | undefined;
}

/** An owner with everything that can be seen of it. */
export interface StoredOwner extends Omit<PropertiesOf<OwnerFields>, "refill">, Stored {
  /** With every refill that is due. */
  readonly counter: UsageCounter | undefined;
}

/** What a verification needs to know of a stored owner. */
export function ownerOf({ rateLimits, counter, ...stored }: StoredOwner): Owner {
  return {
    ...stored,
    rateLimits: rateLimits && limitsOfOwner(stored.id, rateLimits),
    counter: counter && lastKnownBalance(counter),
  };
}

/** An owner to be stored, with the first value of its counter. Later only the ledger changes the counter. */
export interface NewOwner extends PropertiesOf<OwnerFields> {
  readonly id: string;
  readonly remaining: number | undefined;
}

/** Whether what is shared concerns keys of this API. */
export function concernsApi({ apiIds }: Pick<Owner, "apiIds">, apiId: string): boolean {
  return includesApi(apiIds, apiId);
}
