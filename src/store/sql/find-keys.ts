import type { InferResult, Kysely } from "kysely";
import type { JsonObject, Key } from "../../domain/key.ts";
import type { RateLimit } from "../../domain/rate-limit.ts";
import { Unavailable } from "../../domain/unavailable.ts";
import type { Schema } from "./schema.ts";

/** Everything of a key that a verification needs. Each engine adds its condition on `key_secrets.digest`. */
export function selectKeys(db: Kysely<Schema>) {
  return db
    .selectFrom("key_secrets")
    .innerJoin("keys", "keys.id", "key_secrets.key_id")
    .leftJoin("key_usage", "key_usage.key_id", "keys.id")
    .select(["keys.id", "api_id", "owner_id", "name", "meta", "enabled", "expires_at_ms", "remaining"])
    .select(["ratelimit_async", "ratelimit_limit", "ratelimit_duration_ms"]);
}

export type KeyRow = InferResult<ReturnType<typeof selectKeys>>[number];

/** Throws `Unavailable`, for this key only, if the row cannot be read. */
export function toKey(row: KeyRow): Key {
  return {
    id: row.id,
    apiId: row.api_id,
    ownerId: row.owner_id ?? undefined,
    name: row.name ?? undefined,
    meta: readMeta(row.meta),
    enabled: row.enabled === 1,
    expiresAtMs: row.expires_at_ms ?? undefined,
    rateLimit: rateLimitOf(row),
    counter: row.remaining === null ? undefined : { remaining: row.remaining },
  };
}

function readMeta(text: string): JsonObject {
  // Most keys have none.
  if (text === "{}") return {};
  try {
    return JSON.parse(text) as JsonObject;
  } catch (cause) {
    throw new Unavailable("a stored key cannot be read", { cause, affectsOneKeyOnly: true });
  }
}

function rateLimitOf(row: KeyRow): RateLimit | undefined {
  const { ratelimit_async: local, ratelimit_limit: limit, ratelimit_duration_ms: durationMs } = row;
  if (limit === null || durationMs === null) return undefined;
  return { mode: local === 1 ? "local" : "strict", limit, durationMs };
}
