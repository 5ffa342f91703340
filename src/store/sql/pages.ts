import { type RawBuilder, sql } from "kysely";
import type { SqlEngine } from "./sql-engine.ts";
import { columnList } from "./stored-rows.ts";

/*
 * Pages of rows, newest first. Ids sort by the time at which they were made, so that a page begins behind an id: rows that
 * are made or deleted meanwhile move no others from one page to another. A page is found by one statement, which sees one
 * state of the data.
 */

/** Behind every id. */
export const behindAllIds = "\u{10ffff}";

/** Parts of a statement. It is a WITH clause that has `page`, with the ids of up to one row more than asked for. */
export interface Finding {
  readonly tables: RawBuilder<unknown>;
  /** As of the walk. */
  readonly idColumn: string;
  /** The id at which the walk ended because of its bound. */
  readonly reached: RawBuilder<unknown>;
  /** 1 if there are too many to sort. Then `page` is empty. */
  readonly tooMany: RawBuilder<unknown>;
}

/** A condition, and the columns that it needs. */
export interface Filter {
  readonly columns: readonly string[];
  readonly condition: RawBuilder<unknown>;
}

/** Values of columns of which there is an index that goes on with the id. Without any: all rows, by their ids. */
export type Group = readonly { readonly column: string; readonly value: string }[];

/**
 * The parts of a group that are of these APIs, for a root key that is limited to them. Rows of other APIs are not walked and
 * left out: the bound of the walk would count them, so that a cursor, or that there is one, would tell of them.
 */
export function partsOf(group: Group, apiIds: readonly string[], column = "api_id"): readonly Group[] {
  return [...new Set(apiIds)].map((value) => [...group, { column, value }]);
}

/** The page is shorter where that many rows of each group would be too many to examine. */
export function limitOf(limit: number, groups: readonly Group[]): number {
  return Math.min(limit, Math.floor(examinedMax / groups.length) - 1);
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
  readonly limit: number;
}

/**
 * Rows are examined in the order of the list, up to a bound. If the page is not full at the bound, the cursor is the row that
 * was examined last. Without filters, the first rows are the page.
 *
 * Several groups are walked side by side, with an equal share of the bound each, and the page ends where the first of them
 * has reached its share: of what is older, that group may have more.
 */
export function walk(engine: SqlEngine, asked: Walk): Finding {
  const { groups, idColumn, columns, filters, limit } = asked;
  const id = sql.ref(idColumn);
  const most = limit + 1;
  if (filters.length === 0) {
    const page = merged(groups.map((group) => walked(engine, asked, group, columns, most)));
    return {
      tables: sql`page AS MATERIALIZED (${first(page, idColumn, most)})`,
      idColumn,
      reached: sql`NULL`,
      tooMany: sql`0`,
    };
  }
  const share = Math.max(1, Math.floor(asked.walkMax / groups.length));
  const needed = new Set([...columns, ...filters.flatMap((filter) => filter.columns)]);
  const conditions = and(filters.map(({ condition }) => condition));
  const matching = groups.map((group, part) => {
    const rows = walked(engine, asked, group, [...needed, ...group.map(({ column }) => column)], share);
    const order = orderOf(group, idColumn);
    return sql`SELECT ${columnList(columns)}, ${sql.lit(part)} AS part FROM (${rows}) AS walked WHERE ${conditions} ORDER BY ${order} LIMIT ${sql.lit(most)}`;
  });
  const ends = groups.map((group, part) => {
    const isShort = sql`(SELECT count(*) FROM found WHERE part = ${sql.lit(part)}) < ${sql.lit(most)}`;
    return sql`SELECT ${id} FROM (${walked(engine, asked, group, [idColumn], share)}) AS walked
      LIMIT (CASE WHEN ${isShort} THEN 1 ELSE 0 END) OFFSET ${sql.lit(share - 1)}`;
  });
  const reached = sql`(SELECT max(${id}) FROM reached)`;
  return {
    tables: sql`
      found AS MATERIALIZED (${merged(matching)}),
      reached AS MATERIALIZED (${merged(ends)}),
      page AS MATERIALIZED (${first(sql`SELECT * FROM found WHERE ${id} >= coalesce(${reached}, '')`, idColumn, most)})`,
    idColumn,
    reached,
    tooMany: sql`0`,
  };
}

function merged(parts: readonly RawBuilder<unknown>[]): RawBuilder<unknown> {
  const each = parts.map((part) => sql`SELECT * FROM (${part}) AS each_part`);
  return sql.join(each, sql` UNION ALL `);
}

function first(rows: RawBuilder<unknown>, idColumn: string, most: number): RawBuilder<unknown> {
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
): RawBuilder<unknown> {
  const range = and(rangeOf(engine, idColumn, group, before, from));
  return sql`SELECT ${columnList([...new Set(columns)])} FROM ${sql.table(table)} WHERE ${range} ORDER BY ${orderOf(group, idColumn)} LIMIT ${sql.lit(most)}`;
}

function orderOf(group: Group, idColumn: string): RawBuilder<unknown> {
  return sql.join([...group.map(({ column }) => column), idColumn].map((column) => sql`${sql.ref(column)} DESC`));
}

/**
 * The columns before the last one are not compared as rows: Postgres ends the scan of an index where the first column of such
 * a comparison is out of its range, not where another one is. It would pass over everything else of the first column.
 */
function rangeOf(
  engine: SqlEngine,
  idColumn: string,
  group: Group,
  before: string,
  from: string | undefined,
): readonly RawBuilder<unknown>[] {
  const last = group.slice(-1);
  const least = from === undefined ? last : [...last, { column: idColumn, value: from }];
  return [
    ...group.slice(0, -1).map(({ column, value }) => engine.hasValue(column, value)),
    compared([...last, { column: idColumn, value: before }], sql`<`),
    // Of the group alone where that is enough: then Postgres sees that an index of rows with a value in it can be used.
    ...(least.length === 0 ? [] : [compared(least, sql`>=`)]),
  ];
}

function compared(group: Group, operator: RawBuilder<unknown>): RawBuilder<unknown> {
  const columns = sql.join(group.map(({ column }) => sql.ref(column)));
  const values = sql.join(group.map(({ value }) => value));
  return group.length === 1 ? sql`${columns} ${operator} ${values}` : sql`(${columns}) ${operator} (${values})`;
}

export function and(conditions: readonly RawBuilder<unknown>[]): RawBuilder<unknown> {
  return conditions.length === 0 ? sql`1 = 1` : sql.join(conditions, sql` AND `);
}

export interface FoundPage<Row> {
  /** Up to one more than asked for. */
  readonly rows: readonly Row[];
  readonly reached: string | undefined;
}

/** Reads these columns of what was found, newest first. Undefined if there were too many to sort. */
export async function readFound<Row extends { readonly id: string } = { readonly id: string }>(
  engine: SqlEngine,
  { tables, idColumn, reached, tooMany }: Finding,
  /** The columns, and what has to be joined to `page` for them. */
  what: { readonly columns: readonly string[]; readonly joins?: RawBuilder<unknown> },
): Promise<FoundPage<Row> | undefined> {
  const statement = sql`
    WITH ${tables}
    SELECT ${columnList(what.columns)}, ${reached} AS reached, ${tooMany} AS too_many
    FROM (SELECT 1 AS one) AS one
    LEFT JOIN page ON 1 = 1
    ${what.joins ?? sql``}
    ORDER BY page.${sql.ref(idColumn)} DESC`;
  // There is always a row: one without an id if nothing was found.
  const rows = (await engine.scan(statement.compile(engine.db))) as readonly (FoundRow & (Row | { id: null }))[];
  const [{ reached: end, too_many: isTooMany }] = rows as readonly FoundRow[] as readonly [FoundRow];
  if (isTooMany === 1) return undefined;
  return { rows: rows.filter((row): row is FoundRow & Row => row.id !== null), reached: end ?? undefined };
}

/** The texts of a page, in characters; metadata and lists are JSON. Clients of gRPC take answers of 4 MB, where it can be 6 times as long. */
const pageTextMax = 512 * 1024;

/** How many of the first rows a page can hold: at least one. */
export function rowsThatFit(rows: readonly object[]): number {
  let count = 0;
  let length = 0;
  for (const row of rows) {
    for (const value of Object.values(row)) if (typeof value === "string") length += value.length;
    if (length > pageTextMax) break;
    count++;
  }
  return Math.max(1, count);
}

interface FoundRow {
  readonly reached: string | null;
  readonly too_many: number;
}
