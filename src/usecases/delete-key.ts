import type { Management } from "../store/management.ts";

/** Returns whether there was such a key. From then on this replica does not find it. */
export async function deleteKey(management: Pick<Management, "change">, keyId: string): Promise<boolean> {
  return (await management.change({ kind: "deleteKey", keyId })).outcome === "done";
}
