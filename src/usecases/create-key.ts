import { sha256 } from "../ambient/crypto.ts";
import { withDefaults } from "../domain/api.ts";
import { formatId, idRandomLength } from "../domain/id.ts";
import type { KeyProperties } from "../domain/key.ts";
import { byteLengthDefault, formatKey } from "../domain/key-format.ts";
import type { Management } from "../store/management.ts";
import { createWithSecret } from "./create-with-secret.ts";
import type { IdempotencyKey } from "./idempotency.ts";
import type { EventDeps } from "./new-event.ts";

export interface CreateKeyRequest extends KeyProperties {
  readonly apiId: string;
  readonly prefix: string | undefined;
  readonly byteLength: number | undefined;
  /** Whether the defaults of the API count where the request is silent. */
  readonly useDefaults: boolean;
}

export interface CreatedKey {
  readonly keyId: string;
  /** The only copy of the secret. */
  readonly key: string;
}

/** Throws as `createWithSecret`. */
export function createKey(
  management: Management,
  request: CreateKeyRequest,
  idempotencyKey: IdempotencyKey | undefined,
  deps: EventDeps,
): Promise<CreatedKey> {
  const { random } = deps;
  return createWithSecret(management, request, idempotencyKey, deps, async (event) => {
    const completed = await withDefaultsOfApi(management, request);
    const { prefix, byteLength = byteLengthDefault, useDefaults: _, ...properties } = completed;
    const { key, start } = formatKey(prefix, random.bytes(byteLength));
    const keyId = formatId("key", event.atMs, random.bytes(idRandomLength));
    const created = { ...properties, id: keyId, start, createdAtMs: event.atMs, secretDigest: sha256(key) };
    return { answer: { keyId, key }, command: { kind: "createKey", created, event } };
  });
}

/** The request with everything that the key takes over from its API. */
async function withDefaultsOfApi(management: Management, request: CreateKeyRequest): Promise<CreateKeyRequest> {
  if (!request.useDefaults) return request;
  const api = await management.read({ kind: "api", id: request.apiId });
  return api === undefined ? request : withDefaults(request, api.defaults);
}
