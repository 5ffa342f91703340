import type { Clock } from "../ambient/clock.ts";
import { sha256 } from "../ambient/crypto.ts";
import type { Random } from "../ambient/random.ts";
import { formatId, idRandomLength } from "../domain/id.ts";
import type { JsonObject } from "../domain/key.ts";
import { byteLengthDefault, formatKey } from "../domain/key-format.ts";
import type { RateLimit } from "../domain/rate-limit.ts";
import type { Secret } from "../domain/secret.ts";
import type { RefillRule } from "../domain/usage.ts";
import type { KeyStore } from "../store/key-store.ts";
import { createIdempotency } from "./idempotency.ts";

export interface CreateKeyRequest {
  readonly apiId: string;
  readonly prefix: string | undefined;
  readonly byteLength: number | undefined;
  readonly ownerId: string | undefined;
  readonly name: string | undefined;
  readonly meta: JsonObject;
  readonly enabled: boolean;
  readonly expiresAtMs: number | undefined;
  readonly remaining: number | undefined;
  readonly refill: RefillRule | undefined;
  readonly rateLimit: RateLimit | undefined;
}

/** Makes a repeated request safe: both halves together name one answer. */
export interface IdempotencyKey {
  readonly rootKey: Secret;
  readonly value: Secret;
}

export interface CreatedKey {
  readonly keyId: string;
  /** The only copy of the secret. */
  readonly key: string;
}

export type CreateKey = (request: CreateKeyRequest, idempotencyKey?: IdempotencyKey) => Promise<CreatedKey>;

/** The idempotency key was used before, for another request. */
export class IdempotencyConflict extends Error {
  override readonly name = "IdempotencyConflict";
}

/** Answers only after COMMIT: a key that a caller has seen always verifies. */
export function createCreateKey(deps: { keys: Pick<KeyStore, "create">; clock: Clock; random: Random }): CreateKey {
  const { keys, clock, random } = deps;
  return async function createKey(request, idempotencyKey) {
    const nowMs = clock.nowMs();
    const { prefix, byteLength = byteLengthDefault, ...properties } = request;
    const { key, start } = formatKey(prefix, random.bytes(byteLength));
    const created: CreatedKey = { keyId: formatId("key", nowMs, random.bytes(idRandomLength)), key };
    const newKey = { ...properties, id: created.keyId, start, createdAtMs: nowMs, secretDigest: sha256(key) };

    if (idempotencyKey === undefined) {
      await keys.create(newKey);
      return created;
    }
    const idempotency = createIdempotency<CreatedKey>(idempotencyKey.rootKey, idempotencyKey.value);
    const record = idempotency.record(request, created, nowMs, random);
    const result = await keys.create(newKey, record);
    if (result.outcome === "created") return created;
    if (result.record.requestDigest !== record.requestDigest) {
      throw new IdempotencyConflict("this Idempotency-Key was used for a different request");
    }
    return idempotency.open(result.record.sealedAnswer);
  };
}
