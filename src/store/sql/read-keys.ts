import type { QueryResult } from "kysely";
import type { JsonObject, StoredKey, StoredSecret } from "../../domain/key.ts";
import { andThen, type MaybePromise } from "../../domain/maybe-promise.ts";
import { compileOnce } from "./compile-once.ts";
import { type CounterRow, readCounter, withDueRefills } from "./counter-row.ts";
import { rateLimitOf, readCostMax, readMeta, readRateLimits, readTexts } from "./find-keys.ts";
import type { SqlEngine } from "./sql-engine.ts";

/** The key with this value in the column, with everything that its holders may see. */
export async function readKey(
  engine: SqlEngine,
  column: "id" | "digest",
  value: string,
): Promise<StoredKey | undefined> {
  const { rows } = await engine.db.executeQuery<StoredKeyRow>(selectStoredKey[column](engine, { value }));
  return rows[0] && withDueRefill(engine, toStoredKey(rows[0]));
}

/** The key that has this digest of a secret, unless the secret has ended by then. */
export async function readKeyOfSecret(
  engine: SqlEngine,
  digest: string,
  nowMs: number,
): Promise<StoredKey | undefined> {
  const found = await readKey(engine, "digest", digest);
  if (found !== undefined) return found;
  // In this order: secrets move from `keys` to `ending_secrets`, and never back.
  const row = await selectStoredKeys(engine)
    .where("ending_secrets.digest", "=", digest)
    .where("ending_secrets.expires_at_ms", ">", nowMs)
    .executeTakeFirst();
  return row && withDueRefill(engine, toStoredKey(row));
}

const selectBy = (column: "id" | "digest") =>
  compileOnce(["value"], (engine, { value }) => selectStoredKeys(engine).where(`keys.${column}`, "=", value).compile());

/** Finds the key with this value in the column. */
export const selectStoredKey = { id: selectBy("id"), digest: selectBy("digest") };

function selectStoredKeys({ db }: SqlEngine) {
  return db
    .selectFrom("keys")
    .leftJoin("counters", "counters.subject", "keys.id")
    .leftJoin("ending_secrets", "ending_secrets.key_id", "keys.id")
    .select(storedKeyColumns);
}

/** The one key that `selectStoredKey` has found. */
export function storedKeyOf(engine: SqlEngine, found: Pick<QueryResult<unknown>, "rows"> | undefined) {
  return withDueRefill(engine, toStoredKey(found?.rows[0] as StoredKeyRow));
}

function withDueRefill(engine: SqlEngine, key: StoredKey): MaybePromise<StoredKey> {
  return andThen(withDueRefills(engine, [key]), ([only]) => only as StoredKey);
}

/** Of `keys` joined with `counters` and `ending_secrets`: a `StoredKeyRow`. */
export const storedKeyColumns = [
  "keys.id",
  "keys.api_id",
  "keys.start",
  "keys.owner_id",
  "keys.name",
  "keys.meta",
  "keys.enabled",
  "keys.expires_at_ms",
  "keys.ratelimit_async",
  "keys.ratelimit_limit",
  "keys.ratelimit_duration_ms",
  "keys.ratelimits",
  "keys.cost_max",
  "keys.permissions",
  "keys.ip_allow",
  "keys.created_at_ms",
  "keys.updated_at_ms",
  "keys.version",
  "counters.remaining",
  "counters.refill_interval",
  "counters.refill_amount",
  "counters.refill_carry_over",
  "counters.refilled_through_ms",
  "keys.secret_created_at_ms",
  "ending_secrets.start as ending_start",
  "ending_secrets.created_at_ms as ending_created_at_ms",
  "ending_secrets.expires_at_ms as ending_expires_at_ms",
] as const;

export interface StoredKeyRow extends Omit<CounterRow, "remaining"> {
  readonly id: string;
  readonly api_id: string;
  readonly start: string;
  readonly owner_id: string | null;
  readonly name: string | null;
  readonly meta: string;
  readonly enabled: number;
  readonly expires_at_ms: number | null;
  readonly ratelimit_async: number | null;
  readonly ratelimit_limit: number | null;
  readonly ratelimit_duration_ms: number | null;
  readonly ratelimits: string | null;
  readonly cost_max: number | null;
  readonly permissions: string | null;
  readonly ip_allow: string | null;
  readonly created_at_ms: number;
  readonly updated_at_ms: number;
  readonly version: number;
  readonly remaining: number | null;
  readonly secret_created_at_ms: number;
  /** These three are set together, or none of them. */
  readonly ending_start: string | null;
  readonly ending_created_at_ms: number | null;
  readonly ending_expires_at_ms: number | null;
}

/** Throws `Unavailable`, for this key only, if the row cannot be read. */
export function toStoredKey(row: StoredKeyRow): StoredKey {
  return {
    id: row.id,
    apiId: row.api_id,
    start: row.start,
    ownerId: row.owner_id ?? undefined,
    name: row.name ?? undefined,
    meta: readMeta(row.meta) as JsonObject,
    enabled: row.enabled === 1,
    expiresAtMs: row.expires_at_ms ?? undefined,
    rateLimit: rateLimitOf(row.ratelimit_async, row.ratelimit_limit, row.ratelimit_duration_ms),
    rateLimits: readRateLimits(row.ratelimits),
    costMax: readCostMax(row.cost_max),
    permissions: readTexts(row.permissions),
    ipAllow: readTexts(row.ip_allow),
    createdAtMs: row.created_at_ms,
    updatedAtMs: row.updated_at_ms,
    version: row.version,
    counter: readCounter(row),
    secrets: secretsOf(row),
  };
}

function secretsOf(row: StoredKeyRow): StoredSecret[] {
  const { start, secret_created_at_ms: createdAtMs } = row;
  const newest = { start, createdAtMs, expiresAtMs: undefined };
  const { ending_start, ending_created_at_ms, ending_expires_at_ms } = row;
  if (ending_start === null || ending_created_at_ms === null || ending_expires_at_ms === null) return [newest];
  return [newest, { start: ending_start, createdAtMs: ending_created_at_ms, expiresAtMs: ending_expires_at_ms }];
}
