import { sql } from "kysely";
import { andThen, type MaybePromise } from "../../domain/maybe-promise.ts";
import { concernsApi, type StoredOwner } from "../../domain/owner.ts";
import type { OwnerPage, OwnersQuery } from "../queries.ts";
import { compileOnce } from "./compile-once.ts";
import { readCounter, withDueRefills } from "./counter-row.ts";
import { readMeta, readRateLimits, readTexts } from "./find-keys.ts";
import { ownerCounter, ownerCounterIfAny } from "./find-owners.ts";
import { behindAllIds, limitOf, partsOf, readFound, rowsThatFit, walk } from "./pages.ts";
import type { Rows } from "./plan.ts";
import type { Schema } from "./schema.ts";
import type { SqlEngine } from "./sql-engine.ts";

/** Most owners that are walked for a root key that is limited to APIs: each has to be read. */
const walkMax = 1500;

export async function readOwner(engine: SqlEngine, id: string): Promise<StoredOwner | undefined> {
  const found = await engine.db.executeQuery(selectStoredOwner(engine, { id }));
  return found.rows.length === 0 ? undefined : storedOwnerOf(engine, found);
}

/** The owner of this key, if its record concerns keys of the same API. */
export async function readOwnerOfKey(engine: SqlEngine, keyId: string): Promise<StoredOwner | undefined> {
  const columns = ["owner_id", "api_id"] as const;
  const key = await engine.db.selectFrom("keys").select(columns).where("id", "=", keyId).executeTakeFirst();
  if (key === undefined || key.owner_id === null) return undefined;
  const owner = await readOwner(engine, key.owner_id);
  return owner && concernsApi(owner, key.api_id) ? owner : undefined;
}

const ownerColumns = [
  "id",
  "list_id",
  "meta",
  "enabled",
  "api_ids",
  "ratelimits",
  "created_at_ms",
  "updated_at_ms",
  "version",
] as const;

const counterColumns = [
  "counters.remaining",
  "counters.refill_interval",
  "counters.refill_amount",
  "counters.refill_carry_over",
  "counters.refilled_through_ms",
] as const;

/** Finds the owner with this id. */
export const selectStoredOwner = compileOnce(["id"], ({ db }, { id }) =>
  db
    .selectFrom("owners")
    .leftJoin("counters", (join) => join.on("counters.subject", "=", ownerCounter()))
    .select(ownerColumns.map((column) => `owners.${column}` as const))
    .select(counterColumns)
    .where("owners.id", "=", id)
    .compile(),
);

/** The one owner that `selectStoredOwner` has found. */
export function storedOwnerOf(engine: SqlEngine, found: Rows | undefined): MaybePromise<StoredOwner> {
  const owner = toStoredOwner(found?.rows[0] as StoredOwnerRow);
  return andThen(withDueRefills(engine, [owner]), ([only]) => only as StoredOwner);
}

/**
 * A page of owners. Those that a root key with limits to APIs may see have one of its APIs as their first: only such are
 * walked. Of these, it may not see the ones that concern other APIs too.
 */
export async function listOwners(engine: SqlEngine, query: OwnersQuery): Promise<OwnerPage> {
  const { after = behindAllIds, within } = query;
  const groups = within === undefined ? [[]] : partsOf([], within, "first_api_id");
  if (groups.length === 0) return { owners: [] };
  const limit = limitOf(query.limit, groups);
  const filters = within === undefined ? [] : [{ columns: ["api_ids"], condition: engine.isListOf("api_ids", within) }];
  const finding = walk(engine, {
    table: "owners",
    idColumn: "list_id",
    groups,
    before: after,
    // All of them are taken along: joined to the page, Postgres might read the whole table for them.
    columns: [...ownerColumns, "has_counter"],
    filters,
    walkMax,
    limit,
  });
  const page = await readFound<StoredOwnerRow>(engine, finding, found);
  const { rows = [], reached } = page ?? {};
  const shown = rows.slice(0, Math.min(limit, rowsThatFit(rows, jsonOf)));
  const owners = await withDueRefills(engine, shown.map(toStoredOwner));
  const cursor = rows.length > shown.length ? shown.at(-1)?.list_id : reached;
  return cursor === undefined ? { owners } : { owners, cursor };
}

const found = {
  columns: [...ownerColumns.map((column) => `page.${column}`), ...counterColumns],
  joins: sql`LEFT JOIN counters ON counters.subject = ${ownerCounterIfAny("page")}`,
};

function jsonOf({ meta, api_ids, ratelimits }: StoredOwnerRow) {
  return [meta, api_ids, ratelimits];
}

type CounterColumns = "remaining" | "refill_interval" | "refill_amount" | "refill_carry_over" | "refilled_through_ms";

type StoredOwnerRow = Omit<Schema["owners"], "first_api_id" | "has_counter" | "event_id"> & {
  readonly [Column in CounterColumns]: Schema["counters"][Column] | null;
};

/** Throws `Unavailable`, for this owner only, if the row cannot be read. */
function toStoredOwner(row: StoredOwnerRow): StoredOwner {
  return {
    id: row.id,
    meta: readMeta(row.meta),
    enabled: row.enabled === 1,
    apiIds: readTexts(row.api_ids),
    rateLimits: readRateLimits(row.ratelimits),
    counter: readCounter(row),
    createdAtMs: row.created_at_ms,
    updatedAtMs: row.updated_at_ms,
    version: row.version,
  };
}
