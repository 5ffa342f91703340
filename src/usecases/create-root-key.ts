import { sha256 } from "../ambient/crypto.ts";
import { formatId, idRandomLength } from "../domain/id.ts";
import { formatKey } from "../domain/key-format.ts";
import type { Allowance } from "../domain/root-key.ts";
import type { Management } from "../store/management.ts";
import { createWithSecret } from "./create-with-secret.ts";
import type { IdempotencyKey } from "./idempotency.ts";
import type { EventDeps } from "./new-event.ts";
import { rootKeyBytes, rootKeyPrefix } from "./root-keys.ts";

export interface CreateRootKeyRequest extends Allowance {
  readonly name: string | undefined;
}

export interface CreatedRootKey {
  readonly rootKeyId: string;
  /** The only copy of the secret. */
  readonly rootKey: string;
}

/** Throws as `createWithSecret`. */
export function createRootKey(
  management: Management,
  request: CreateRootKeyRequest,
  idempotencyKey: IdempotencyKey | undefined,
  deps: EventDeps,
): Promise<CreatedRootKey> {
  const { random } = deps;
  return createWithSecret(management, request, idempotencyKey, deps, async (event) => {
    const { key, start } = formatKey(rootKeyPrefix, random.bytes(rootKeyBytes));
    const rootKeyId = formatId("root", event.atMs, random.bytes(idRandomLength));
    const created = { ...request, id: rootKeyId, digest: sha256(key), start, createdAtMs: event.atMs };
    return { answer: { rootKeyId, rootKey: key }, command: { kind: "createRootKey", created, event } };
  });
}
