import type { KeyStore } from "../store/key-store.ts";

/** Returns whether there was such a key. From then on this replica does not find it. */
export type DeleteKey = (keyId: string) => Promise<boolean>;

export interface DeleteKeyDeps {
  readonly keys: Pick<KeyStore, "mutate">;
}

export function createDeleteKey(deps: DeleteKeyDeps): DeleteKey {
  return async (keyId) => (await deps.keys.mutate(keyId, { kind: "delete" })) !== undefined;
}
