import type { StoredKey } from "../../domain/key.ts";
import { endOfPrefix } from "../../domain/prefix-range.ts";
import { keyFields } from "../../domain/resources.ts";
import type { KeysQuery, Page } from "../queries.ts";
import { columnsOf } from "./field-columns.ts";
import { behindAllIds, type Filter, type PageStatement, readPage, splitByApi, walkPage } from "./pages.ts";
import { and, type Sql, sql } from "./sql.ts";
import type { SqlEngine } from "./sql-engine.ts";
import { storedColumns, storedFrom } from "./stored-rows.ts";

/*
 * A page of keys is found in one of two ways.
 *
 * - Walking: the keys of the API or of the owner are examined in the order of the list, up to a bound. Their index has the
 *   columns of most filters, so that a key that does not match costs a step in the index.
 * - Searching: all keys of the API whose name or `start` begins with a text are ranges of two indexes. If there are few, they
 *   are sorted. If there are many, walking finds some of them soon.
 */

/** Most keys that are walked. */
const walkMax = 4000;
/** The same where a filter is not in the index of a walk, such as a search by name: then every key has to be read. */
const readWalkMax = 1500;
/** The columns that keys are filtered by in the index. */
const indexed: readonly string[] = ["enabled", "expires_at_ms"];
/** Most keys that are read in each of the two indexes of a search. */
const rangeMax = 1000;

export async function listKeys(engine: SqlEngine, query: KeysQuery): Promise<Page<StoredKey>> {
  const { apiId, search, apiIds, limit } = query;
  if (apiId !== undefined && apiIds?.includes(apiId) === false) return { items: [] };
  const isSearched = apiId !== undefined && search !== undefined;
  const searched = isSearched && (await readPage(engine, searchFor(query, apiId, search), limit, found));
  const { rows, cursor } = searched || (await walkKeys(engine, query));
  return { items: await storedFrom(engine, "key", rows), cursor };
}

function walkKeys(engine: SqlEngine, query: KeysQuery) {
  const { apiId, ownerId, limit, after = behindAllIds } = query;
  const apiIds = apiId === undefined ? query.apiIds : [apiId];
  const owner = ownerId === undefined ? [] : [{ column: "owner_id", value: ownerId }];
  const filters = filtersOf(query);
  const isIndexed = filters.every(({ columns }) => columns.every((column) => indexed.includes(column)));
  const walk = {
    table: "keys",
    idColumn: "id",
    // The owner's keys, only of these APIs where any are given. No key of another API is walked: `pages.ts` says why.
    groups: apiIds === undefined ? [owner] : splitByApi(owner, apiIds),
    before: after,
    columns: ["id"],
    filters,
    walkMax: isIndexed ? walkMax : readWalkMax,
    limit,
  } as const;
  return walkPage(engine, walk, found);
}

function searchFor(query: KeysQuery, apiId: string, search: string): PageStatement {
  const { ownerId } = query;
  const conditions = filtersOf({ ...query, search: undefined }).map(({ condition }) => condition);
  if (ownerId !== undefined) conditions.push(sql`owner_id = ${ownerId}`);
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
        SELECT found_id AS id FROM ${found}
        WHERE ${and([sql`NOT ${tooMany}`, ...isBehind, ...(conditions.length === 0 ? [] : [matches])])}
        ORDER BY found_id DESC LIMIT ${sql.lit(query.limit + 1)}
      )`,
    idColumn: "id",
    tooMany: sql`CASE WHEN ${tooMany} THEN 1 ELSE 0 END`,
  };
}

/** What is left to compare in the keys of an API or owner. */
function filtersOf({ ownerId: _, expiresBeforeMs, search, ...query }: KeysQuery): readonly Filter[] {
  const filters: Filter[] = Object.entries(columnsOf(keyFields, query)).map(([column, value]) => {
    return { columns: [column], condition: sql`${sql.ref(column)} = ${value}` };
  });
  const add = (condition: Sql, ...columns: string[]) => void filters.push({ columns, condition });
  if (expiresBeforeMs !== undefined) add(sql`expires_at_ms < ${expiresBeforeMs}`, "expires_at_ms");
  if (search !== undefined) {
    const end = endOfPrefix(search);
    const begins = sql`((name >= ${search} AND name < ${end}) OR (start >= ${search} AND start < ${end}))`;
    add(begins, "name", "start");
  }
  return filters;
}

const found = {
  columns: storedColumns("key"),
  joins: sql`
    LEFT JOIN keys ON keys.id = page.id
    LEFT JOIN counters ON counters.subject = CASE WHEN keys.has_counter = 1 THEN keys.id END
    LEFT JOIN ending_secrets ON ending_secrets.key_id = keys.id`,
};
