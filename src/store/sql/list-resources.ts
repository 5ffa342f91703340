import type { StoredApi } from "../../domain/api.ts";
import type { StoredOwner } from "../../domain/owner.ts";
import type { StoredRootKey } from "../../domain/root-key.ts";
import type { Page, PageQuery } from "../queries.ts";
import { ownerCounterIfAny } from "./find-rows.ts";
import { behindAllIds, splitByApi, walkPage } from "./pages.ts";
import { columnList, sql } from "./sql.ts";
import type { SqlEngine } from "./sql-engine.ts";
import { ownColumns, storedColumns, storedFrom } from "./stored-rows.ts";

/** Most owners that are walked for a root key that is limited to APIs: each has to be read. */
const walkMax = 1500;

/**
 * A page of owners. Those that a root key with limits to APIs may see have one of its APIs as their first: only such are
 * walked. Of these, it may not see the ones that concern other APIs too.
 */
export async function listOwners(engine: SqlEngine, query: PageQuery<"owners">): Promise<Page<StoredOwner>> {
  const { after = behindAllIds, apiIds, limit } = query;
  const walk = {
    table: "owners",
    idColumn: "list_id",
    groups: apiIds === undefined ? [[]] : splitByApi([], apiIds, "first_api_id"),
    before: after,
    // All of them are taken along: joined to the page, Postgres might read the whole table for them.
    columns: [...ownColumns("owner"), "list_id", "has_counter"],
    filters: apiIds === undefined ? [] : [{ columns: ["api_ids"], condition: engine.isListOf("api_ids", apiIds) }],
    walkMax,
    limit,
  } as const;
  const { rows, cursor } = await walkPage(engine, walk, {
    columns: [...storedColumns("owner", "page"), "page.list_id"],
    joins: sql`LEFT JOIN counters ON counters.subject = ${ownerCounterIfAny("page")}`,
  });
  return { items: await storedFrom(engine, "owner", rows), cursor };
}

/** There are few root keys: a page is read along their primary key. */
export async function listRootKeys(
  engine: SqlEngine,
  { limit, after = behindAllIds }: PageQuery<"rootKeys">,
): Promise<Page<StoredRootKey>> {
  const rows = await engine.read(sql`SELECT ${columnList(storedColumns("rootKey"))} FROM root_keys
    WHERE id < ${after} ORDER BY id DESC LIMIT ${limit + 1}`);
  const items = await storedFrom(engine, "rootKey", rows.slice(0, limit));
  return { items, cursor: rows.length > limit ? items.at(-1)?.id : undefined };
}

/**
 * APIs are in the order of their creation, and so are not in that of their ids: the cursor has both, separated by a space.
 * One row more than the page has is read: it shows whether another page follows.
 */
export async function listApis(engine: SqlEngine, query: PageQuery<"apis">): Promise<Page<StoredApi>> {
  const { limit, after = "", apiIds } = query;
  // An empty list is no SQL.
  if (apiIds?.length === 0) return { items: [] };
  const [createdAtMs = ""] = after.split(" ", 1);
  const isBehind = sql`(created_at_ms, id) < (${Number(createdAtMs)}, ${after.slice(createdAtMs.length + 1)})`;
  const statement = sql`SELECT ${columnList(storedColumns("api"))} FROM apis
    WHERE ${after === "" ? sql`1 = 1` : isBehind} AND ${apiIds === undefined ? sql`1 = 1` : sql`id IN (${sql.join(apiIds)})`}
    ORDER BY created_at_ms DESC, id DESC LIMIT ${sql.lit(limit + 1)}`;
  const rows = await engine.scan(statement);
  const items = await storedFrom(engine, "api", rows.slice(0, limit));
  const last = items.at(-1);
  return { items, cursor: rows.length > limit && last ? `${last.createdAtMs} ${last.id}` : undefined };
}
