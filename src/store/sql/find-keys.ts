import { type Kysely, type RawBuilder, sql } from "kysely";
import type { JsonObject, Key } from "../../domain/key.ts";
import type { RateLimit } from "../../domain/rate-limit.ts";
import { Unavailable } from "../../domain/unavailable.ts";
import type { Schema } from "./schema.ts";

/**
 * Everything of a key that a verification needs, in the order of `KeyRow`. Each engine adds its condition on `keys.digest`,
 * and reads rows as arrays: objects would take longer to make than a row to find. `counterKey`: the id under which a counter is
 * looked for; null is not looked for.
 */
export function selectKeys(db: Kysely<Schema>, counterKey: RawBuilder<string> = sql.ref<string>("keys.id")) {
  return db
    .selectFrom("keys")
    .leftJoin("counters", (join) => join.on("counters.subject", "=", counterKey))
    .select(keyColumns)
    .select(sql<number | null>`CAST(NULL AS bigint)`.as("secret_expires_at_ms"));
}

/** The same for a secret that was replaced. The condition is on `ending_secrets.digest`. */
export function selectKeysOfEndingSecrets(
  db: Kysely<Schema>,
  counterKey: RawBuilder<string> = sql.ref<string>("keys.id"),
) {
  return db
    .selectFrom("ending_secrets")
    .innerJoin("keys", "keys.id", "ending_secrets.key_id")
    .leftJoin("counters", (join) => join.on("counters.subject", "=", counterKey))
    .select(keyColumns)
    .select("ending_secrets.expires_at_ms as secret_expires_at_ms");
}

const keyColumns = [
  "keys.id",
  "keys.api_id",
  "keys.owner_id",
  "keys.name",
  "keys.meta",
  "keys.enabled",
  "keys.expires_at_ms",
  "counters.remaining",
  "keys.ratelimit_async",
  "keys.ratelimit_limit",
  "keys.ratelimit_duration_ms",
] as const;

/** Null for a key without a counter. It saves the embedded engine a search; look-ups on Postgres take twice as long with it. */
export const counterKeyIfAny = sql<string>`case when has_counter = 1 then keys.id end`;

export type KeyRow = readonly [
  id: string,
  apiId: string,
  ownerId: string | null,
  name: string | null,
  meta: string,
  enabled: number,
  expiresAtMs: number | null,
  remaining: number | null,
  ratelimitAsync: number | null,
  ratelimitLimit: number | null,
  ratelimitDurationMs: number | null,
  secretExpiresAtMs: number | null,
];

/** Throws `Unavailable`, for this key only, if the row cannot be read. */
export function toKey(row: KeyRow): Key {
  const [id, apiId, ownerId, name, meta, enabled, expiresAtMs, remaining, local, limit, durationMs, secretExpires] =
    row;
  return {
    id,
    apiId,
    ownerId: ownerId ?? undefined,
    name: name ?? undefined,
    meta: readMeta(meta),
    enabled: enabled === 1,
    expiresAtMs: expiresAtMs ?? undefined,
    rateLimit: rateLimitOf(local, limit, durationMs),
    counter: remaining === null ? undefined : { remaining },
    secretExpiresAtMs: secretExpires ?? undefined,
  };
}

export function readMeta(text: string): JsonObject {
  // Most keys have none.
  if (text === "{}") return {};
  try {
    return JSON.parse(text) as JsonObject;
  } catch (cause) {
    throw new Unavailable("a stored key cannot be read", { cause, affectsOneKeyOnly: true });
  }
}

export function rateLimitOf(
  local: number | null,
  limit: number | null,
  durationMs: number | null,
): RateLimit | undefined {
  if (limit === null || durationMs === null) return undefined;
  return { mode: local === 1 ? "local" : "strict", limit, durationMs };
}
