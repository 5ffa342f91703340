import { sha256 } from "../ambient/crypto.ts";
import { byteLengthDefault, formatKey, prefixOfStart } from "../domain/key-format.ts";
import type { Management } from "../store/management.ts";
import type { CreatedKey } from "./create-key.ts";
import { changeSecret } from "./create-with-secret.ts";
import type { IdempotencyKey } from "./idempotency.ts";
import type { EventDeps } from "./new-event.ts";

export interface RerollKeyRequest {
  readonly keyId: string;
  readonly overlapMs: number;
  readonly byteLength: number | undefined;
}

/**
 * Gives the key a new secret, with the prefix of the one before, and answers it after COMMIT; undefined if there is no such
 * key. A repeated request gets the same secret again, also if it was replaced since.
 */
export function rerollKey(
  management: Management,
  request: RerollKeyRequest,
  idempotencyKey: IdempotencyKey | undefined,
  deps: EventDeps,
): Promise<CreatedKey | undefined> {
  const { keyId, overlapMs, byteLength = byteLengthDefault } = request;
  return changeSecret(management, request, idempotencyKey, deps, async (event) => {
    const found = await management.read({ kind: "key", id: keyId });
    if (found === undefined) return undefined;
    const { key, start } = formatKey(prefixOfStart(found.start), deps.random.bytes(byteLength));
    const secretDigest = sha256(key);
    return { answer: { keyId, key }, command: { kind: "rerollKey", id: keyId, secretDigest, start, overlapMs, event } };
  });
}
