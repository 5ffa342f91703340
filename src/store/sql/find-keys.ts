import { type Kysely, type RawBuilder, sql } from "kysely";
import { type IpRanges, toIpRanges } from "../../domain/ip-allow.ts";
import type { JsonObject, Key, LastKnownBalance } from "../../domain/key.ts";
import { areNamedRateLimits, costMaxMax, limitsOfKey, type NamedRateLimit } from "../../domain/limits.ts";
import type { RateLimit } from "../../domain/rate-limit.ts";
import type { RefillInterval } from "../../domain/refill-calendar.ts";
import { Unavailable } from "../../domain/unavailable.ts";
import { isIntegerIn } from "./is-integer-in.ts";
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
    .select(hasOwnerRecord.as("has_owner_record"))
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
    .select(hasOwnerRecord.as("has_owner_record"))
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
  "counters.refill_interval",
  "keys.ratelimit_async",
  "keys.ratelimit_limit",
  "keys.ratelimit_duration_ms",
  "keys.cost_max",
  "keys.ratelimits",
  "keys.permissions",
  "keys.ip_allow",
] as const;

/** 1 or null. A SELECT for one row: nothing is searched for a key that names no owner, and no engine reads the whole table. */
const hasOwnerRecord = sql<number | null>`CASE WHEN keys.owner_id IS NOT NULL
  THEN (SELECT 1 FROM owners WHERE owners.id = keys.owner_id) END`;

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
  refillInterval: string | null,
  ratelimitAsync: number | null,
  ratelimitLimit: number | null,
  ratelimitDurationMs: number | null,
  costMax: number | null,
  ratelimits: string | null,
  permissions: string | null,
  ipAllow: string | null,
  hasOwnerRecord: number | null,
  secretExpiresAtMs: number | null,
];

/** Throws `Unavailable`, for this key only, if the row cannot be read. */
export function toKey(row: KeyRow): Key {
  const [id, apiId, ownerId, name, meta, enabled, expiresAtMs, remaining, ...others] = row;
  const [interval, local, limit, durationMs, costMax, ratelimits, permissions, ipAllow, hasRecord, secretExpires] =
    others;
  const rateLimits = readRateLimits(ratelimits);
  return {
    id,
    apiId,
    ownerId: ownerId ?? undefined,
    hasOwnerRecord: hasRecord === 1,
    name: name ?? undefined,
    meta: readMeta(meta),
    enabled: enabled === 1,
    expiresAtMs: expiresAtMs ?? undefined,
    rateLimit: rateLimitOf(local, limit, durationMs),
    limits: rateLimits && limitsOfKey(id, rateLimits),
    costMax: readCostMax(costMax),
    permissions: readTexts(permissions),
    ipRanges: readRanges(ipAllow),
    counter: balanceOf(remaining, interval),
    secretExpiresAtMs: secretExpires ?? undefined,
  };
}

/** A counter as it was when its key or owner was looked up. */
export function balanceOf(remaining: number | null, interval: string | null): LastKnownBalance | undefined {
  if (remaining === null) return undefined;
  return { remaining, refillInterval: (interval as RefillInterval | null) ?? undefined };
}

export function readMeta(text: string): JsonObject {
  // Most keys have none.
  return text === "{}" ? {} : ofOneKey(() => JSON.parse(text) as JsonObject);
}

/** A column with a list of texts. */
export function readTexts(list: string | null): readonly string[] | undefined {
  return list === null ? undefined : ofOneKey(() => parseTexts(list));
}

function parseTexts(list: string): readonly string[] {
  const texts: unknown = JSON.parse(list);
  if (Array.isArray(texts) && texts.every((text) => typeof text === "string")) return texts;
  throw new TypeError("not a list of texts");
}

export function readRateLimits(list: string | null): readonly NamedRateLimit[] | undefined {
  return list === null ? undefined : ofOneKey(() => parseRateLimits(list));
}

function parseRateLimits(list: string): readonly NamedRateLimit[] {
  const limits: unknown = JSON.parse(list);
  if (areNamedRateLimits(limits)) return limits;
  throw new TypeError("not a list of limits");
}

export function readCostMax(costMax: number | null): number | undefined {
  if (costMax === null) return undefined;
  return ofOneKey(() => {
    if (isIntegerIn(1, costMax, costMaxMax)) return costMax;
    throw new RangeError("not a cost");
  });
}

function readRanges(list: string | null): IpRanges | undefined {
  const texts = readTexts(list);
  return texts && ofOneKey(() => toIpRanges(texts));
}

function ofOneKey<Value>(read: () => Value): Value {
  try {
    return read();
  } catch (cause) {
    throw new Unavailable("a stored key or owner cannot be read", { cause, affectsOneKeyOnly: true });
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
