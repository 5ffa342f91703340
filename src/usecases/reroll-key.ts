import { sha256 } from "../ambient/crypto.ts";
import { byteLengthDefault, formatKey, prefixOfStart } from "../domain/key-format.ts";
import type { Management } from "../store/management.ts";
import type { CreatedKey } from "./create-key.ts";
import { stillThere } from "./create-with-secret.ts";
import { createIdempotency, type IdempotencyKey } from "./idempotency.ts";
import { type EventDeps, newEvent } from "./new-event.ts";

export interface RerollKeyRequest {
  readonly keyId: string;
  readonly overlapMs: number;
  readonly byteLength: number | undefined;
}

/**
 * Gives the key a new secret, with the prefix of the one before, and answers it after COMMIT; undefined if there is no such
 * key. A repeated request gets the same secret again, also if it was replaced since.
 */
export async function rerollKey(
  management: Management,
  request: RerollKeyRequest,
  idempotencyKey: IdempotencyKey | undefined,
  deps: EventDeps,
): Promise<CreatedKey | undefined> {
  const { keyId, overlapMs, byteLength = byteLengthDefault } = request;
  const { random } = deps;
  const idempotency = idempotencyKey && createIdempotency<CreatedKey>(idempotencyKey, request);
  const event = newEvent(deps);
  const found = await management.read({ kind: "key", id: keyId });
  if (found === undefined) {
    const kept = await idempotency?.find(management, event.atMs);
    return kept && stillThere(management, kept);
  }

  const { key, start } = formatKey(prefixOfStart(found.start), random.bytes(byteLength));
  const rerolled: CreatedKey = { keyId, key };
  const command = { kind: "rerollKey", id: keyId, secretDigest: sha256(key), start, overlapMs, event } as const;
  const outcome = await management.change(command, idempotency?.record(rerolled, keyId, event.atMs, random));
  switch (outcome.outcome) {
    case "done":
      return rerolled;
    case "repeated":
      return idempotency && stillThere(management, idempotency.open(outcome.record));
    default:
      return undefined;
  }
}
