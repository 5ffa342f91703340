import { sha256 } from "../ambient/crypto.ts";
import { isExpired } from "../domain/expiry.ts";
import { formatId, idRandomLength } from "../domain/id.ts";
import { formatKey } from "../domain/key-format.ts";
import type { Allowance } from "../domain/root-key.ts";
import type { Management } from "../store/management.ts";
import { ExpiresInThePast } from "./create-key.ts";
import { createIdempotency, IdempotencyConflict, type IdempotencyKey } from "./idempotency.ts";
import { type EventDeps, newEvent } from "./new-event.ts";
import { rootKeyBytes, rootKeyPrefix } from "./root-keys.ts";

export interface CreateRootKeyRequest extends Allowance {
  readonly name: string | undefined;
}

export interface CreatedRootKey {
  readonly rootKeyId: string;
  /** The only copy of the secret. */
  readonly rootKey: string;
}

/** Answers only after COMMIT: a root key that a caller has seen is always valid. Throws `ExpiresInThePast`. */
export async function createRootKey(
  management: Management,
  request: CreateRootKeyRequest,
  idempotencyKey: IdempotencyKey | undefined,
  deps: EventDeps,
): Promise<CreatedRootKey> {
  const { random } = deps;
  const event = newEvent(deps);
  const idempotency = idempotencyKey && createIdempotency<CreatedRootKey>(idempotencyKey, request);
  if (isExpired(request.expiresAtMs, event.atMs)) {
    // A repeated request gets its first answer, even if its expiry has passed meanwhile.
    const kept = await idempotency?.find(management, event.atMs);
    if (kept === undefined) throw new ExpiresInThePast(request.expiresAtMs as number);
    return stillThere(management, kept);
  }

  const { key, start } = formatKey(rootKeyPrefix, random.bytes(rootKeyBytes));
  const created = { rootKeyId: formatId("root", event.atMs, random.bytes(idRandomLength)), rootKey: key };
  const rootKey = { ...request, id: created.rootKeyId, digest: sha256(key), start, createdAtMs: event.atMs };
  const record = idempotency?.record(created, created.rootKeyId, event.atMs, random);
  const result = await management.change({ kind: "createRootKey", rootKey, event }, record);
  if (result.outcome !== "repeated" || idempotency === undefined) return created;
  return stillThere(management, idempotency.open(result.record));
}

/** Throws `IdempotencyConflict` if the root key was revoked since: its secret opens nothing any more. */
async function stillThere(management: Management, created: CreatedRootKey): Promise<CreatedRootKey> {
  const { rootKeyId } = created;
  if ((await management.read({ kind: "rootKey", rootKeyId })) !== undefined) return created;
  throw new IdempotencyConflict(`this Idempotency-Key has created ${rootKeyId}, which was revoked since`);
}
