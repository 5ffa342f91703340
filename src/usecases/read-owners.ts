import type { StoredOwner } from "../domain/owner.ts";
import type { Management } from "../store/management.ts";
import type { OwnerPage } from "../store/queries.ts";

const limitDefault = 50;

/** Undefined if there is no such owner. */
export function getOwner(management: Pick<Management, "read">, ownerId: string): Promise<StoredOwner | undefined> {
  return management.read({ kind: "owner", ownerId });
}

/** A page of owners, newest first. */
export function listOwners(
  management: Pick<Management, "read">,
  { limit = limitDefault, after }: { readonly limit?: number | undefined; readonly after?: string | undefined },
): Promise<OwnerPage> {
  return management.read({ kind: "owners", limit, after });
}
