import { type RawBuilder, sql } from "kysely";
import { endOfPrefix } from "../../domain/prefix-range.ts";
import type { KeyPage, KeysQuery } from "../management.ts";
import { type StoredKeyRow, storedKeyColumns, toStoredKey, withDueRefills } from "./read-keys.ts";
import type { SqlEngine } from "./sql-engine.ts";

/*
 * Pages of keys, newest first. Ids sort by the time at which they were made, so that a page begins behind an id: keys that
 * are made or deleted meanwhile move no others from one page to another.
 *
 * A page is found in one of two ways. Each is one statement, which sees one state of the data.
 *
 * - Walking: the keys of the API or of the owner are examined in the order of the list, up to a bound. Their index has the
 *   columns of most filters, so that a key that does not match costs a step in the index. If the page is not full at the
 *   bound, the cursor is the key that was examined last.
 * - Searching: all keys of the API whose name or `start` begins with a text are ranges of two indexes. If there are few, they
 *   are sorted. If there are many, walking finds some of them soon.
 *
 * Both compare rows of columns, and order by the first column too although one value of it is wanted: so no other index
 * than the intended one can give that order, whatever an engine believes about its data. With `api_id = ?` Postgres may
 * walk the ids of all APIs if it believes that most keys are of this one.
 */

/** Most keys that are walked. They are walked twice if the page is not full: once for what matches, once for the end. */
const walkMax = 4000;
/** The same for a search: names are not in the index of a walk, so that every key has to be read. */
const searchWalkMax = 1500;
/** Most keys that are read in each of the two indexes of a search. */
const rangeMax = 1000;

/** Metadata of a page's keys, in characters of JSON. Clients of gRPC take answers of 4 MB, where it can be 6 times as long. */
const pageMetaMax = 512 * 1024;

const behindAllIds = "\u{10ffff}";

export async function listKeys(engine: SqlEngine, query: KeysQuery): Promise<KeyPage> {
  const { apiId, search } = query;
  if (apiId !== undefined && search !== undefined) {
    const found = await readPage(engine, query, searchFor(query, apiId, search));
    if (found !== undefined) return found;
  }
  return (await readPage(engine, query, walk(query))) as KeyPage;
}

/** Parts of a statement. It is a WITH clause that has `page`, the ids of up to one key more than asked for. */
interface Finding {
  readonly tables: RawBuilder<unknown>;
  /** The id at which the walk ended because of its bound. */
  readonly reached: RawBuilder<unknown>;
  /** 1 if there are too many to sort. Then `page` is empty. */
  readonly tooMany: RawBuilder<unknown>;
}

function walk(query: KeysQuery): Finding {
  const { apiId, ownerId, after = behindAllIds } = query;
  // An owner has fewer keys than an API.
  const [group, value, others] =
    ownerId !== undefined
      ? [sql.ref("owner_id"), ownerId, { ...query, ownerId: undefined }]
      : [sql.ref("api_id"), apiId, { ...query, apiId: undefined }];
  const rest = sql`(${group}, id) < (${value}, ${after}) AND ${group} >= ${value} ORDER BY ${group} DESC, id DESC`;
  const { columns, conditions } = filtersOf(others);
  const most = query.search === undefined ? walkMax : searchWalkMax;
  const walked = sql`SELECT ${sql.join([group, sql`id`, ...columns])} FROM keys WHERE ${rest} LIMIT ${sql.lit(most)}`;
  const isShort = sql`(SELECT count(*) FROM page) <= ${sql.lit(query.limit)}`;
  return {
    tables: sql`
      page AS MATERIALIZED (
        SELECT id FROM (${walked}) AS walked WHERE ${and(conditions)}
        ORDER BY ${group} DESC, id DESC LIMIT ${sql.lit(query.limit + 1)}
      ), reached AS MATERIALIZED (
        SELECT id FROM (SELECT id FROM keys WHERE ${rest} LIMIT ${sql.lit(most)}) AS walked
        LIMIT (CASE WHEN ${isShort} THEN 1 ELSE 0 END) OFFSET ${sql.lit(most - 1)}
      )`,
    reached: sql`(SELECT id FROM reached)`,
    tooMany: sql`0`,
  };
}

function searchFor(query: KeysQuery, apiId: string, search: string): Finding {
  const { conditions } = filtersOf({ ...query, apiId: undefined, search: undefined });
  const end = endOfPrefix(search);
  // Whether a key is still in the range is asked of what the inner part has read: Postgres would go on behind the end.
  const range = (column: string) => {
    const text = sql.ref(column);
    const isBegun = sql`(api_id, ${text}) >= (${apiId}, ${search}) AND ${text} IS NOT NULL`;
    return sql`
      SELECT id AS found_id FROM (
        SELECT api_id, ${text}, id FROM keys WHERE ${isBegun} ORDER BY api_id, ${text} LIMIT ${sql.lit(rangeMax)}
      ) AS begun WHERE api_id = ${apiId} AND ${text} < ${end}`;
  };
  const found = sql`(SELECT * FROM by_name UNION SELECT * FROM by_start) AS found`;
  // A key is read only if it has to be filtered, and by its id: for a join, Postgres may read the whole table instead.
  const matches = sql`(SELECT 1 FROM keys WHERE id = found_id AND ${and(conditions)}) = 1`;
  const isBehind = query.after === undefined ? [] : [sql`found_id < ${query.after}`];
  const isFull = (table: string) => sql`(SELECT count(*) FROM ${sql.ref(table)}) = ${sql.lit(rangeMax)}`;
  const tooMany = sql`(${isFull("by_name")} OR ${isFull("by_start")})`;
  return {
    tables: sql`
      by_name AS MATERIALIZED (${range("name")}),
      by_start AS MATERIALIZED (${range("start")}),
      page AS MATERIALIZED (
        SELECT found_id AS id FROM ${found} WHERE ${and([sql`NOT ${tooMany}`, ...isBehind, ...(conditions.length === 0 ? [] : [matches])])}
        ORDER BY found_id DESC LIMIT ${sql.lit(query.limit + 1)}
      )`,
    reached: sql`NULL`,
    tooMany: sql`CASE WHEN ${tooMany} THEN 1 ELSE 0 END`,
  };
}

type Filters = Pick<KeysQuery, "apiId" | "ownerId" | "enabled" | "expiresBeforeMs" | "search">;

/** The conditions, and the columns that they need. */
function filtersOf({ apiId, ownerId, enabled, expiresBeforeMs, search }: Filters) {
  const columns: RawBuilder<unknown>[] = [];
  const conditions: RawBuilder<unknown>[] = [];
  if (apiId !== undefined) {
    columns.push(sql`api_id`);
    conditions.push(sql`api_id = ${apiId}`);
  }
  if (ownerId !== undefined) {
    columns.push(sql`owner_id`);
    conditions.push(sql`owner_id = ${ownerId}`);
  }
  if (enabled !== undefined) {
    columns.push(sql`enabled`);
    conditions.push(sql`enabled = ${Number(enabled)}`);
  }
  if (expiresBeforeMs !== undefined) {
    columns.push(sql`expires_at_ms`);
    conditions.push(sql`expires_at_ms < ${expiresBeforeMs}`);
  }
  if (search !== undefined) {
    const end = endOfPrefix(search);
    columns.push(sql`name`, sql`start`);
    conditions.push(sql`((name >= ${search} AND name < ${end}) OR (start >= ${search} AND start < ${end}))`);
  }
  return { columns, conditions };
}

function and(conditions: readonly RawBuilder<unknown>[]): RawBuilder<unknown> {
  return conditions.length === 0 ? sql`1 = 1` : sql.join(conditions, sql` AND `);
}

/** Undefined if there were too many to sort. */
async function readPage(engine: SqlEngine, { limit }: KeysQuery, finding: Finding): Promise<KeyPage | undefined> {
  // There is always a row: one without a key if no key was found.
  const rows = (await engine.scan(pageStatement(finding).compile(engine.db))) as readonly PageRow[];
  const [{ reached, too_many: tooMany }] = rows as readonly [PageRow];
  if (tooMany === 1) return undefined;
  const found = rows.filter((row): row is PageRow & StoredKeyRow => row.id !== null);
  const shown = found.slice(0, Math.min(limit, rowsThatFit(found)));
  const keys = await withDueRefills(engine, shown.map(toStoredKey));
  const cursor = found.length > shown.length ? keys.at(-1)?.id : (reached ?? undefined);
  return cursor === undefined ? { keys } : { keys, cursor };
}

/** How many of the first rows a page can hold: at least one. */
function rowsThatFit(rows: readonly StoredKeyRow[]): number {
  let count = 0;
  let length = 0;
  for (const { meta } of rows) {
    length += meta.length;
    if (length > pageMetaMax) break;
    count++;
  }
  return Math.max(1, count);
}

type PageRow = { readonly reached: string | null; readonly too_many: number } & (StoredKeyRow | { readonly id: null });

function pageStatement({ tables, reached, tooMany }: Finding): RawBuilder<unknown> {
  return sql`
    WITH ${tables}
    SELECT ${sql.join(storedKeyColumns.map((column) => sql.ref(column)))}, ${reached} AS reached, ${tooMany} AS too_many
    FROM (SELECT 1 AS one) AS one
    LEFT JOIN page ON 1 = 1
    LEFT JOIN keys ON keys.id = page.id
    LEFT JOIN key_usage ON key_usage.key_id = CASE WHEN keys.has_counter = 1 THEN keys.id END
    ORDER BY page.id DESC`;
}
