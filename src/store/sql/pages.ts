import { type RawBuilder, sql } from "kysely";
import type { SqlEngine } from "./sql-engine.ts";

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

export interface Walk {
  readonly table: "keys" | "events";
  /** Only rows with this value in the column, of which there is an index that goes on with the id. Undefined: all rows. */
  readonly group: { readonly column: string; readonly value: string } | undefined;
  /** Only ids before this one. */
  readonly before: string;
  /** Only this id and those behind it. */
  readonly from?: string | undefined;
  /** Columns that `page` has, with the id. */
  readonly columns: readonly string[];
  readonly filters: readonly Filter[];
  /** Most rows that are walked. They are walked twice if the page is not full: once for what matches, once for the end. */
  readonly walkMax: number;
  readonly limit: number;
}

/**
 * Rows are examined in the order of the list, up to a bound. If the page is not full at the bound, the cursor is the row that
 * was examined last. Without filters, the first rows are the page.
 */
export function walk(asked: Walk): Finding {
  const { group, columns, filters, walkMax, limit } = asked;
  if (filters.length === 0) return foundIn(walked(asked, columns, limit + 1));
  const needed = new Set([
    ...columns,
    ...(group ? [group.column] : []),
    ...filters.flatMap((filter) => filter.columns),
  ]);
  const conditions = and(filters.map(({ condition }) => condition));
  const isShort = sql`(SELECT count(*) FROM page) <= ${sql.lit(limit)}`;
  return {
    tables: sql`
      page AS MATERIALIZED (
        SELECT ${list(columns)} FROM (${walked(asked, [...needed], walkMax)}) AS walked
        WHERE ${conditions} ORDER BY ${orderOf(group)} LIMIT ${sql.lit(limit + 1)}
      ), reached AS MATERIALIZED (
        SELECT id FROM (${walked(asked, ["id"], walkMax)}) AS walked
        LIMIT (CASE WHEN ${isShort} THEN 1 ELSE 0 END) OFFSET ${sql.lit(walkMax - 1)}
      )`,
    reached: sql`(SELECT id FROM reached)`,
    tooMany: sql`0`,
  };
}

/** The first rows of several walks without filters, together. */
export function walkAll(walks: readonly [Walk, ...Walk[]]): Finding {
  const [{ columns, limit }] = walks;
  const each = walks.map((asked) => sql`SELECT * FROM (${walked(asked, columns, limit + 1)}) AS walked`);
  return foundIn(
    sql`SELECT * FROM (${sql.join(each, sql` UNION ALL `)}) AS walks ORDER BY id DESC LIMIT ${sql.lit(limit + 1)}`,
  );
}

/** A page that ends where there are no more rows. */
function foundIn(rows: RawBuilder<unknown>): Finding {
  return { tables: sql`page AS MATERIALIZED (${rows})`, reached: sql`NULL`, tooMany: sql`0` };
}

/**
 * With a group it compares rows of columns, and orders by the group too although one value of it is wanted: so no other
 * index than the intended one can give that order, whatever an engine believes about its data. With `api_id = ?` Postgres may
 * walk the ids of all APIs if it believes that most keys are of this one.
 */
function walked({ table, group, before, from }: Walk, columns: readonly string[], most: number) {
  const range = group === undefined ? rangeOfIds(before, from) : rangeOfGroup(group, before, from);
  return sql`SELECT ${list(columns)} FROM ${sql.table(table)} WHERE ${and(range)} ORDER BY ${orderOf(group)} LIMIT ${sql.lit(most)}`;
}

function list(columns: readonly string[]): RawBuilder<unknown> {
  return sql.join(columns.map(toSql));
}

function orderOf(group: Walk["group"]): RawBuilder<unknown> {
  return group === undefined ? sql`id DESC` : sql`${sql.ref(group.column)} DESC, id DESC`;
}

function rangeOfIds(before: string, from: string | undefined): readonly RawBuilder<unknown>[] {
  return [sql`id < ${before}`, ...(from === undefined ? [] : [sql`id >= ${from}`])];
}

function rangeOfGroup(
  { column, value }: NonNullable<Walk["group"]>,
  before: string,
  from: string | undefined,
): readonly RawBuilder<unknown>[] {
  const group = sql.ref(column);
  // Of the group alone where that is enough: then Postgres sees that an index of rows with a value in the column can be used.
  const begins = from === undefined ? sql`${group} >= ${value}` : sql`(${group}, id) >= (${value}, ${from})`;
  return [sql`(${group}, id) < (${value}, ${before})`, begins];
}

export function and(conditions: readonly RawBuilder<unknown>[]): RawBuilder<unknown> {
  return conditions.length === 0 ? sql`1 = 1` : sql.join(conditions, sql` AND `);
}

/** Whether it is one of the values, of which there may be none. */
export function isOneOf(column: string, values: readonly string[]): RawBuilder<unknown> {
  return values.length === 0 ? sql`1 = 0` : sql`${sql.ref(column)} IN (${sql.join(values)})`;
}

export interface FoundPage<Row> {
  /** Up to one more than asked for. */
  readonly rows: readonly Row[];
  readonly reached: string | undefined;
}

/** Reads these columns of what was found, newest first. Undefined if there were too many to sort. */
export async function readFound<Row extends { readonly id: string }>(
  engine: SqlEngine,
  { tables, reached, tooMany }: Finding,
  /** The columns, and what has to be joined to `page` for them. */
  what: { readonly columns: readonly string[]; readonly joins?: RawBuilder<unknown> },
): Promise<FoundPage<Row> | undefined> {
  const statement = sql`
    WITH ${tables}
    SELECT ${list(what.columns)}, ${reached} AS reached, ${tooMany} AS too_many
    FROM (SELECT 1 AS one) AS one
    LEFT JOIN page ON 1 = 1
    ${what.joins ?? sql``}
    ORDER BY page.id DESC`;
  // There is always a row: one without an id if nothing was found.
  const rows = (await engine.scan(statement.compile(engine.db))) as readonly (FoundRow & (Row | { id: null }))[];
  const [{ reached: end, too_many: isTooMany }] = rows as readonly FoundRow[] as readonly [FoundRow];
  if (isTooMany === 1) return undefined;
  return { rows: rows.filter((row): row is FoundRow & Row => row.id !== null), reached: end ?? undefined };
}

/** `table.column`, or `table.column as name`. */
function toSql(column: string): RawBuilder<unknown> {
  const [from = "", name] = column.split(" as ");
  return name === undefined ? sql.ref(from) : sql`${sql.ref(from)} AS ${sql.ref(name)}`;
}

interface FoundRow {
  readonly reached: string | null;
  readonly too_many: number;
}
