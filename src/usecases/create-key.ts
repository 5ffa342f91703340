import type { Ambient } from "../ambient/ambient.ts";
import { sha256 } from "../ambient/crypto.ts";
import { withDefaults } from "../domain/api.ts";
import { isExpired, looksLikeSeconds } from "../domain/expiry.ts";
import { formatId, idRandomLength } from "../domain/id.ts";
import type { JsonObject } from "../domain/key.ts";
import { byteLengthDefault, formatKey } from "../domain/key-format.ts";
import type { NamedRateLimit } from "../domain/limits.ts";
import type { RateLimit } from "../domain/rate-limit.ts";
import type { RefillRule } from "../domain/usage.ts";
import type { Management } from "../store/management.ts";
import { StateConflict } from "./conflict.ts";
import { createIdempotency, IdempotencyConflict, type IdempotencyKey } from "./idempotency.ts";
import { newEvent } from "./new-event.ts";

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
  readonly rateLimits: readonly NamedRateLimit[] | undefined;
  readonly costMax: number | undefined;
  readonly permissions: readonly string[] | undefined;
  readonly ipAllow: readonly string[] | undefined;
  /** Whether the defaults of the API count where the request is silent. */
  readonly useDefaults: boolean;
}

export interface CreatedKey {
  readonly keyId: string;
  /** The only copy of the secret. */
  readonly key: string;
}

export type CreateKey = (
  management: Management,
  request: CreateKeyRequest,
  idempotencyKey?: IdempotencyKey,
) => Promise<CreatedKey>;

export type CreateKeyDeps = Pick<Ambient, "clock" | "random">;

/** The key would have expired before it was made. Safe to show to the caller. */
export class ExpiresInThePast extends Error {
  override readonly name = "ExpiresInThePast";

  constructor(expiresAtMs: number) {
    const hint = looksLikeSeconds(expiresAtMs) ? ", in milliseconds; this looks like seconds" : "";
    super(`must be in the future${hint}`);
  }
}

/** There is no such API, and a key does not create it. Safe to show to the caller. */
export class NoSuchApi extends Error {
  override readonly name = "NoSuchApi";

  constructor() {
    super("there is no such API; create it first with apis.createApi");
  }
}

/** The request with everything that the key takes over from its API. */
async function completed(management: Management, request: CreateKeyRequest): Promise<CreateKeyRequest> {
  if (!request.useDefaults) return request;
  const defaults = await management.read({ kind: "apiDefaults", apiId: request.apiId });
  return defaults === undefined ? request : withDefaults(request, defaults);
}

/** Throws `IdempotencyConflict` if the key was deleted since: its secret opens nothing any more. */
export async function stillThere(management: Management, created: CreatedKey): Promise<CreatedKey> {
  const { keyId } = created;
  if ((await management.read({ kind: "key", keyId })) !== undefined) return created;
  throw new IdempotencyConflict(`this Idempotency-Key was used for ${keyId}, which was deleted since`);
}

/** Answers only after COMMIT: a key that a caller has seen always verifies. */
export function createCreateKey({ clock, random }: CreateKeyDeps): CreateKey {
  return async function createKey(management, request, idempotencyKey) {
    const nowMs = clock.nowMs();
    const idempotency = idempotencyKey && createIdempotency<CreatedKey>(idempotencyKey, request);
    if (request.expiresAtMs !== undefined && isExpired(request.expiresAtMs, nowMs)) {
      // A repeated request gets its first answer, even if its expiry has passed meanwhile.
      const kept = await idempotency?.find(management, nowMs);
      if (kept === undefined) throw new ExpiresInThePast(request.expiresAtMs);
      return stillThere(management, kept);
    }

    const {
      prefix,
      byteLength = byteLengthDefault,
      useDefaults: _,
      ...properties
    } = await completed(management, request);
    const { key, start } = formatKey(prefix, random.bytes(byteLength));
    const created: CreatedKey = { keyId: formatId("key", nowMs, random.bytes(idRandomLength)), key };
    const newKey = { ...properties, id: created.keyId, start, createdAtMs: nowMs, secretDigest: sha256(key) };

    const command = { kind: "createKey", key: newKey, event: newEvent({ clock, random }, nowMs) } as const;
    const record = idempotency?.record(created, created.keyId, nowMs, random);
    const result = await management.change(command, record);
    if (result.outcome === "missing") throw new NoSuchApi();
    if (result.outcome === "conflict") throw new StateConflict(result.reason);
    if (result.outcome === "done" || idempotency === undefined) return created;
    return stillThere(management, idempotency.open(result.record));
  };
}
