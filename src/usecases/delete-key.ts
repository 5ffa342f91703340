import type { KeyManagement } from "../store/key-store.ts";

/** Returns whether there was such a key. From then on this replica does not find it. */
export async function deleteKey(keys: Pick<KeyManagement, "mutate">, keyId: string): Promise<boolean> {
  return (await keys.mutate(keyId, { kind: "delete" })) !== undefined;
}
