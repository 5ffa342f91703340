import type { Management } from "../store/management.ts";
import type { KeyPage, KeysQuery } from "../store/queries.ts";

const limitDefault = 50;

/** A page of keys, newest first. An API without keys and one that does not exist look the same. */
export function listKeys(
  management: Pick<Management, "read">,
  { limit = limitDefault, ...request }: Omit<KeysQuery, "kind" | "limit"> & { readonly limit?: number | undefined },
): Promise<KeyPage> {
  return management.read({ kind: "keys", limit, ...request });
}
