import { and, columnList, type Sql, sql } from "./sql.ts";
import type { SqlEngine } from "./sql-engine.ts";

/*
 * Pages of rows, newest first. Ids sort by the time at which they were made, so that a page begins behind an id: rows that
 * are made or deleted meanwhile move no others from one page to another. A page is found by one statement, which sees one
 * state of the data.
 */

/** Behind every id. */
export const behindAllIds = "\u{10ffff}";

/** Parts of a statement. It is a WITH clause that has `page`, with the ids of up to one row more than asked for. */
export interface PageStatement {
  readonly tables: Sql;
  /** As of the walk. */
  readonly idColumn: string;
  /** The id at which the walk ended because of its bound. Absent: it has none. */
  readonly reached?: Sql;
  /** 1 if there are too many to sort. Then `page` is empty. Absent: there are not. */
  readonly tooMany?: Sql;
}

/** A condition, and the columns that it needs. */
export interface Filter {
  readonly columns: readonly string[];
  readonly condition: Sql;
}

/** Values of columns of which there is an index that goes on with the id. Without any: all rows, by their ids. */
export type Group = readonly { readonly column: string; readonly value: string }[];

/**
 * The parts of a group that are of these APIs, for a root key that is limited to them. Rows of other APIs are not walked and
 * left out: the bound of the walk would count them, so that a cursor, or that there is one, would show that they exist.
 */
export function splitByApi(group: Group, apiIds: readonly string[], column = "api_id"): readonly Group[] {
  return [...new Set(apiIds)].map((value) => [...group, { column, value }]);
}

/** Most rows that a page examines. */
const examinedMax = 10_000;

export interface Walk {
  readonly table: "keys" | "owners" | "events";
  /** The column whose values are the ids. */
  readonly idColumn: string;
  /** The rows that are walked: those of each of these groups, and no others. No group is given twice. */
  readonly groups: readonly Group[];
  /** Only ids before this one. */
  readonly before: string;
  /** Only this id and those behind it. */
  readonly from?: string | undefined;
  /** Columns that `page` has, the id among them. */
  readonly columns: readonly string[];
  readonly filters: readonly Filter[];
  /** Most rows that are walked. They are walked twice if the page is not full: once for what matches, once for the end. */
  readonly walkMax: number;
  /** The page is shorter where that many rows of each group would be too many to examine. */
  readonly limit: number;
}

/**
 * Rows are examined in the order of the list, up to a bound. If the page is not full at the bound, the cursor is the row that
 * was examined last. Without filters, the first rows are the page.
 *
 * Several groups are walked side by side, with an equal share of the bound each, and the page ends where the first of them
 * has reached its share: of what is older, that group may have more.
 */
export async function walkPage<Row extends FoundRow>(
  engine: SqlEngine,
  walk: Walk,
  found: Found,
): Promise<FoundPage<Row>> {
  const { length } = walk.groups;
  if (length === 0) return { rows: [], cursor: undefined };
  const limit = Math.min(walk.limit, Math.floor(examinedMax / length) - 1);
  return (await readPage<Row>(engine, walkText(engine, { ...walk, limit }), limit, found)) as FoundPage<Row>;
}

function walkText(engine: SqlEngine, asked: Walk): PageStatement {
  const { groups, idColumn, columns, filters, limit } = asked;
  const id = sql.ref(idColumn);
  const most = limit + 1;
  if (filters.length === 0) {
    const page = merged(groups.map((group) => walked(engine, asked, group, columns, most)));
    return { tables: sql`page AS MATERIALIZED (${first(page, idColumn, most)})`, idColumn };
  }
  const share = Math.max(1, Math.floor(asked.walkMax / groups.length));
  const needed = [...columns, ...filters.flatMap((filter) => filter.columns)];
  const conditions = and(filters.map(({ condition }) => condition));
  const matching = groups.map((group, part) => {
    const rows = walked(engine, asked, group, [...needed, ...group.map(({ column }) => column)], share);
    return sql`SELECT ${columnList(columns)}, ${sql.lit(part)} AS part FROM (${rows}) AS walked WHERE ${conditions}
      ORDER BY ${orderOf(group, idColumn)} LIMIT ${sql.lit(most)}`;
  });
  const ends = groups.map((group, part) => {
    const isShort = sql`(SELECT count(*) FROM found WHERE part = ${sql.lit(part)}) < ${sql.lit(most)}`;
    return sql`SELECT ${id} FROM (${walked(engine, asked, group, [idColumn], share)}) AS walked
      LIMIT (CASE WHEN ${isShort} THEN 1 ELSE 0 END) OFFSET ${sql.lit(share - 1)}`;
  });
  const reached = sql`(SELECT max(${id}) FROM reached)`;
  const page = sql`SELECT * FROM found WHERE ${id} >= coalesce(${reached}, '')`;
  return {
    tables: sql`
      found AS MATERIALIZED (${merged(matching)}),
      reached AS MATERIALIZED (${merged(ends)}),
      page AS MATERIALIZED (${first(page, idColumn, most)})`,
    idColumn,
    reached,
  };
}

function merged(parts: readonly Sql[]): Sql {
  const each = parts.map((part) => sql`SELECT * FROM (${part}) AS each_part`);
  return sql.join(each, " UNION ALL ");
}

function first(rows: Sql, idColumn: string, most: number): Sql {
  return sql`SELECT * FROM (${rows}) AS merged ORDER BY ${sql.ref(idColumn)} DESC LIMIT ${sql.lit(most)}`;
}

/**
 * With a group it compares rows of columns, and orders by the group too although one value of it is wanted: so no other
 * index than the intended one can give that order, whatever an engine believes about its data. With `api_id = ?` Postgres may
 * walk the ids of all APIs if it believes that most keys are of this one.
 */
function walked(
  engine: SqlEngine,
  { table, idColumn, before, from }: Walk,
  group: Group,
  columns: readonly string[],
  most: number,
): Sql {
  const range = and(rangeOf(engine, idColumn, group, before, from));
  return sql`SELECT ${columnList([...new Set(columns)])} FROM ${sql.ref(table)} WHERE ${range} ORDER BY ${orderOf(group, idColumn)} LIMIT ${sql.lit(most)}`;
}

function orderOf(group: Group, idColumn: string): Sql {
  return sql.join([...group.map(({ column }) => column), idColumn].map((column) => sql`${sql.ref(column)} DESC`));
}

/**
 * The columns before the last one are not compared as rows: Postgres ends the scan of an index where the first column of such
 * a comparison is out of its range, not where another one is. It would pass over everything else of the first column.
 */
function rangeOf(engine: SqlEngine, idColumn: string, group: Group, before: string, from: string | undefined) {
  const last = group.slice(-1);
  const least = from === undefined ? last : [...last, { column: idColumn, value: from }];
  return [
    ...group.slice(0, -1).map(({ column, value }) => engine.hasValue(column, value)),
    compared([...last, { column: idColumn, value: before }], sql`<`),
    // Only the group is compared where that is enough: then Postgres sees that an index of rows with a value in it can be used.
    ...(least.length === 0 ? [] : [compared(least, sql`>=`)]),
  ];
}

function compared(group: Group, operator: Sql): Sql {
  const columns = sql.join(group.map(({ column }) => sql.ref(column)));
  const values = sql.join(group.map(({ value }) => value));
  return group.length === 1 ? sql`${columns} ${operator} ${values}` : sql`(${columns}) ${operator} (${values})`;
}

/** The columns of what was found, and what has to be joined to `page` for them. */
export interface Found {
  readonly columns: readonly string[];
  readonly joins?: Sql;
}

export interface FoundPage<Row> {
  readonly rows: readonly Row[];
  /** Given if there may be more: see `Page`. */
  readonly cursor: string | undefined;
}

export type FoundRow = Readonly<Record<string, unknown>> & { readonly id: string };

/** Reads these columns of a page, newest first. Undefined if there were too many to sort. */
export async function readPage<Row extends FoundRow>(
  engine: SqlEngine,
  { tables, idColumn, reached = sql`NULL`, tooMany = sql`0` }: PageStatement,
  limit: number,
  { columns, joins = sql`` }: Found,
): Promise<FoundPage<Row> | undefined> {
  const answered = (await engine.scan(sql`
    WITH ${tables}
    SELECT ${columnList(columns)}, ${reached} AS reached, ${tooMany} AS too_many
    FROM (SELECT 1 AS one) AS one
    LEFT JOIN page ON 1 = 1
    ${joins}
    ORDER BY page.${sql.ref(idColumn)} DESC`)) as readonly {
    id: string | null;
    reached: string | null;
    too_many: number;
  }[];
  // There is always a row: one without an id if nothing was found.
  if (answered[0]?.too_many === 1) return undefined;
  const all = answered.filter(({ id }) => id !== null) as unknown as readonly Row[];
  const rows = all.slice(0, Math.min(limit, rowsThatFit(all)));
  const cursor = all.length > rows.length ? rows.at(-1)?.[idColumn] : answered[0]?.reached;
  return { rows, cursor: (cursor ?? undefined) as string | undefined };
}

/** The texts of a page, in characters; metadata and lists are JSON. Clients of gRPC take answers of 4 MB, where it can be 6 times as long. */
const pageTextMax = 512 * 1024;

/** How many of the first rows a page can hold: at least one. */
function rowsThatFit(rows: readonly object[]): number {
  let count = 0;
  let length = 0;
  for (const row of rows) {
    for (const value of Object.values(row)) if (typeof value === "string") length += value.length;
    if (length > pageTextMax) break;
    count++;
  }
  return Math.max(1, count);
}
