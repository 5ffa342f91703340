import type { Ambient } from "../ambient/ambient.ts";
import { sha256 } from "../ambient/crypto.ts";
import type { StoredKey } from "../domain/key.ts";
import type { Secret } from "../domain/secret.ts";
import type { Management } from "../store/management.ts";

/** The key, by its id or by one of its secrets; undefined if there is none. */
export function getKey(
  management: Pick<Management, "read">,
  by: { readonly keyId: string } | { readonly key: Secret },
  { clock }: Pick<Ambient, "clock">,
): Promise<StoredKey | undefined> {
  return "keyId" in by
    ? management.read({ kind: "key", keyId: by.keyId })
    : management.read({ kind: "keyOfSecret", digest: sha256(by.key.reveal()), nowMs: clock.nowMs() });
}
