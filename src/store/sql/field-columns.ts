import type { Field, Fields, Kind, KindValues, PropertiesOf } from "../../domain/fields.ts";
import { type NamedRateLimit, toNamedRateLimit } from "../../domain/limits.ts";
import type { RateLimit } from "../../domain/rate-limit.ts";
import { resources } from "../../domain/resources.ts";
import { read } from "./read-columns.ts";
import { type Sql, type SqlValue, sql, sqlText, whole } from "./sql.ts";

/* The columns of described fields: their names, what is written to them, and what they are read as. */

/** A row of columns, by their names. */
export type ColumnValues = { readonly [column: string]: SqlValue };

/** How a value of each kind is written, where it has one column. An empty list is none. */
const written: { readonly [Name in Exclude<Kind, "rateLimit" | "refill">]: (value: KindValues[Name]) => SqlValue } = {
  text: (value) => value,
  whole: (value) => value,
  moment: (value) => value,
  flag: Number,
  json: (value) => JSON.stringify(value),
  texts: listColumn,
  addresses: listColumn,
  rateLimits: (limits: readonly NamedRateLimit[]) => listColumn(limits.map(toNamedRateLimit)),
  defaults: (value) => JSON.stringify(value),
};

export function listColumn(list: readonly unknown[] | null | undefined): string | null {
  return list?.length ? JSON.stringify(list) : null;
}

function rateLimitColumns(column: string, rateLimit: RateLimit | null): ColumnValues {
  return {
    [`${column}_async`]: rateLimit && Number(rateLimit.mode === "local"),
    [`${column}_limit`]: rateLimit?.limit ?? null,
    [`${column}_duration_ms`]: rateLimit?.durationMs ?? null,
  };
}

/** The columns of those fields that have a value, or null. A field that is undefined has none here. */
export function columnsOf(fields: Fields, values: object): ColumnValues {
  const columns: Record<string, SqlValue> = {};
  for (const [name, value] of Object.entries(values)) {
    const { kind, column } = fields[name] ?? {};
    if (value === undefined || column === undefined || kind === undefined) continue;
    if (kind === "rateLimit") Object.assign(columns, rateLimitColumns(column, value as RateLimit | null));
    else columns[column] = value === null ? null : (written[kind as keyof typeof written] as Write)(value);
  }
  return columns;
}

type Write = (value: unknown) => SqlValue;

/** The columns of all fields of something new: the default, or null, where it does not have a field. */
export function allColumnsOf(fields: Fields, values: object): ColumnValues {
  const given = values as Readonly<Record<string, unknown>>;
  const all = Object.entries(fields).map(([name, { byDefault = null }]) => [name, given[name] ?? byDefault]);
  return columnsOf(fields, Object.fromEntries(all));
}

/** Columns with whole numbers: those of fields, and others. */
const wholes = new Set([
  ...Object.values(resources)
    .flatMap((fields) => Object.values<Field>(fields))
    .filter(({ kind }) => ["whole", "moment", "flag", "rateLimit"].includes(kind))
    .flatMap(columnNamesOf),
  ...["created_at_ms", "updated_at_ms", "secret_created_at_ms", "version", "has_counter", "is_deleting"],
  ...["remaining", "refill_amount", "refill_carry_over", "refilled_through_ms", "credited"],
  ...["metered_hour", "metered_since_ms", "former_spent"],
]);

/** Adds a row. `rest`: the rest of the SELECT with its values, from FROM or WHERE on, and of the INSERT. */
export function insertRow(table: string, row: ColumnValues, rest: Sql): Sql {
  return sql`INSERT INTO ${sql.ref(table)} (${columnsIn(row)}) SELECT ${valuesIn(row)} ${rest}`;
}

/** Adds rows with the same columns, at least one. In `rest` they are a table with the name `given`. */
export function insertRows(table: string, rows: readonly ColumnValues[], rest: Sql): Sql {
  const columns = columnsIn(rows[0] ?? {});
  const selects = rows.map((row) => sql`SELECT ${valuesIn(row)}`);
  return sql`INSERT INTO ${sql.ref(table)} (${columns})
    SELECT ${columns} FROM (${sql.join(selects, " UNION ALL ")}) AS given ${rest}`;
}

function columnsIn(row: ColumnValues): Sql {
  return sql.join(Object.keys(row).map(sql.ref));
}

/** The engine cannot infer their types from the columns that they are for. */
function valuesIn(row: ColumnValues): Sql {
  const values = Object.entries(row).map(([column, value]) => {
    const typed = wholes.has(column) ? whole(value as number | null) : sqlText(value as string | null);
    return sql`${typed} AS ${sql.ref(column)}`;
  });
  return sql.join(values);
}

/** The names of a field's columns. */
export function columnNamesOf({ kind, column }: Field): string[] {
  if (column === undefined) return [];
  return kind === "rateLimit" ? ["async", "limit", "duration_ms"].map((part) => `${column}_${part}`) : [column];
}

/** The names of all columns of these fields. */
export function columnNames(fields: Fields): string[] {
  return Object.values(fields).flatMap(columnNamesOf);
}

/** The fields out of a row with their columns. Throws `Unavailable`, for this row only, if it cannot be read. */
export function propertiesOf<All extends Fields>(fields: All, row: object): Omit<PropertiesOf<All>, "refill"> {
  const columns = row as ColumnValues;
  const properties: Record<string, unknown> = {};
  for (const [name, field] of Object.entries(fields)) {
    if (field.column === undefined) continue;
    const values = columnNamesOf(field).map((column) => columns[column]);
    const { kind, max } = field;
    properties[name] =
      kind === "whole" ? read.whole(values[0] as number | null, max) : (read[kind as Simple] as Read)(...values);
  }
  return properties as Omit<PropertiesOf<All>, "refill">;
}

type Simple = Exclude<keyof typeof read, "whole">;
type Read = (...columns: unknown[]) => unknown;
