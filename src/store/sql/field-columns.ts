import { type RawBuilder, sql } from "kysely";
import type { Field, Fields, Kind, KindValues, PropertiesOf } from "../../domain/fields.ts";
import { type NamedRateLimit, toNamedRateLimit } from "../../domain/limits.ts";
import type { RateLimit } from "../../domain/rate-limit.ts";
import { read } from "./read-columns.ts";
import { text, whole } from "./sql-values.ts";

/* The columns of described fields: their names, what is written to them, and what they are read as. */

export type ColumnValue = string | number | null;

/** A row of columns, by their names. */
export type Row = { readonly [column: string]: ColumnValue };

type RateLimitParts = "async" | "limit" | "duration_ms";

/** The columns of fields, with what they hold. */
export type ColumnsOf<All extends Fields> = {
  [Name in keyof All as SimpleColumn<All[Name]>]: StoredAs<All[Name]> | NullIfAbsent<All[Name]>;
} & { [Name in keyof All as RateLimitColumn<All[Name]>]: number | null };

type SimpleColumn<F extends Field> = F extends { readonly column: infer Name extends string }
  ? F["kind"] extends "rateLimit"
    ? never
    : Name
  : never;
type RateLimitColumn<F extends Field> = F extends {
  readonly kind: "rateLimit";
  readonly column: infer Name extends string;
}
  ? `${Name}_${RateLimitParts}`
  : never;
type StoredAs<F extends Field> = F["kind"] extends "whole" | "moment" | "flag" ? number : string;
type NullIfAbsent<F extends Field> = F extends { readonly byDefault: unknown } ? never : null;

/** How a value of each kind is written, where it has one column. An empty list is none. */
const written: { readonly [Name in Exclude<Kind, "rateLimit" | "refill">]: (value: KindValues[Name]) => ColumnValue } =
  {
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

function rateLimitColumns(column: string, rateLimit: RateLimit | null): Row {
  return {
    [`${column}_async`]: rateLimit && Number(rateLimit.mode === "local"),
    [`${column}_limit`]: rateLimit?.limit ?? null,
    [`${column}_duration_ms`]: rateLimit?.durationMs ?? null,
  };
}

/** The columns of those fields that have a value, or null. A field that is undefined has none here. */
export function columnsOf(fields: Fields, values: object): Row {
  const columns: Record<string, ColumnValue> = {};
  for (const [name, value] of Object.entries(values)) {
    const { kind, column } = fields[name] ?? {};
    if (value === undefined || column === undefined || kind === undefined) continue;
    if (kind === "rateLimit") Object.assign(columns, rateLimitColumns(column, value as RateLimit | null));
    else columns[column] = value === null ? null : (written[kind as keyof typeof written] as Write)(value);
  }
  return columns;
}

type Write = (value: unknown) => ColumnValue;

/** Of something new, the columns of all fields: of a field that it does not have the default, or null. */
export function allColumnsOf(fields: Fields, values: object): Row {
  const given = values as Readonly<Record<string, unknown>>;
  const all = Object.entries(fields).map(([name, { byDefault = null }]) => [name, given[name] ?? byDefault]);
  return columnsOf(fields, Object.fromEntries(all));
}

/** Columns with whole numbers that hold no field. */
const otherWholes = ["created_at_ms", "updated_at_ms", "secret_created_at_ms", "version", "has_counter", "is_deleting"];

export type TypedRow = readonly [column: string, value: RawBuilder<string | number>][];

/** The values of a row in a SELECT: see `sql-values.ts`. */
export function typedRow(fields: Fields, row: Row): TypedRow {
  const ofFields = Object.values(fields).filter(({ kind }) => ["whole", "moment", "flag", "rateLimit"].includes(kind));
  const wholes = new Set([...ofFields.flatMap(columnNamesOf), ...otherWholes]);
  return Object.entries(row).map(([column, value]) => {
    return [column, wholes.has(column) ? whole(value as number | null) : text(value as string | null)];
  });
}

export function columnsIn(row: TypedRow): RawBuilder<unknown> {
  return sql.join(row.map(([column]) => sql.ref(column)));
}

export function valuesIn(row: TypedRow): RawBuilder<unknown> {
  return sql.join(row.map(([column, value]) => sql`${value} AS ${sql.ref(column)}`));
}

/** The names of a field's columns. */
export function columnNamesOf({ kind, column }: Field): string[] {
  if (column === undefined) return [];
  return kind === "rateLimit" ? ["async", "limit", "duration_ms"].map((part) => `${column}_${part}`) : [column];
}

/** The names of all columns of these fields. */
export function columnNames<All extends Fields>(fields: All): (keyof ColumnsOf<All> & string)[] {
  return Object.values(fields).flatMap(columnNamesOf) as (keyof ColumnsOf<All> & string)[];
}

/** The fields out of a row with their columns. Throws `Unavailable`, for this row only, if it cannot be read. */
export function propertiesOf<All extends Fields>(fields: All, row: object): Omit<PropertiesOf<All>, "refill"> {
  const columns = row as Row;
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
