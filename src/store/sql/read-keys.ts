import type { QueryResult } from "kysely";
import type { JsonObject, StoredKey } from "../../domain/key.ts";
import { andThen, type MaybePromise } from "../../domain/maybe-promise.ts";
import { Unavailable } from "../../domain/unavailable.ts";
import { refilled } from "../../domain/usage.ts";
import { type CounterRow, counterOf } from "./counter-row.ts";
import { rateLimitOf, readMeta } from "./find-keys.ts";
import type { SqlEngine } from "./sql-engine.ts";

/** The key with this value in the column, with everything that its holders may see. */
export async function readKey(
  engine: SqlEngine,
  column: "id" | "digest",
  value: string,
): Promise<StoredKey | undefined> {
  const row = await selectStoredKey(engine, column, value).executeTakeFirst();
  return row && withDueRefills(engine, toStoredKey(row));
}

export function selectStoredKey({ db }: SqlEngine, column: "id" | "digest", value: string) {
  return db
    .selectFrom("keys")
    .leftJoin("key_usage", "key_usage.key_id", "keys.id")
    .where(column, "=", value)
    .select(["id", "api_id", "start", "owner_id", "name", "meta", "enabled", "expires_at_ms"])
    .select(["ratelimit_async", "ratelimit_limit", "ratelimit_duration_ms"])
    .select(["created_at_ms", "updated_at_ms", "version"])
    .select(["remaining", "refill_interval", "refill_amount", "refill_carry_over", "refilled_through_ms"]);
}

/** The one key that `selectStoredKey` has found. */
export function storedKeyOf(engine: SqlEngine, found: Pick<QueryResult<unknown>, "rows"> | undefined) {
  return withDueRefills(engine, toStoredKey(found?.rows[0] as StoredKeyRow));
}

/** By the clock that refills go by, so that this is what the next verification finds. */
function withDueRefills({ ledgerNowMs }: SqlEngine, key: StoredKey): MaybePromise<StoredKey> {
  const { counter } = key;
  if (counter?.refill === undefined) return key;
  return andThen(ledgerNowMs(), (nowMs) => ({ ...key, counter: refilled(counter, nowMs) }));
}

interface StoredKeyRow extends Omit<CounterRow, "remaining"> {
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
  readonly created_at_ms: number;
  readonly updated_at_ms: number;
  readonly version: number;
  readonly remaining: number | null;
}

/** Throws `Unavailable`, for this key only, if the row cannot be read. */
function toStoredKey({ remaining, ...row }: StoredKeyRow): StoredKey {
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
    createdAtMs: row.created_at_ms,
    updatedAtMs: row.updated_at_ms,
    version: row.version,
    counter: remaining === null ? undefined : readCounter({ ...row, remaining }),
  };
}

function readCounter(row: CounterRow) {
  try {
    return counterOf(row);
  } catch (cause) {
    throw new Unavailable("a stored counter cannot be read", { cause, affectsOneKeyOnly: true });
  }
}
