import { CompiledQuery } from "kysely";
import type { Schema } from "./schema.ts";

/** An index that a migration adds to a table which may be large and in use. */
export interface IndexDefinition {
  readonly name: string;
  readonly table: keyof Schema;
  /** In SQL: columns, each with its direction if that is not ascending. */
  readonly columns: readonly string[];
  /** In SQL: the rows that it holds. Absent: all. */
  readonly where?: string;
}

/** The same on every engine, except for how it is built. It changes nothing where an index of that name exists. */
export function createIndexQuery({ name, table, columns, where }: IndexDefinition, how = ""): CompiledQuery {
  const rows = where === undefined ? "" : ` WHERE ${where}`;
  return CompiledQuery.raw(`CREATE INDEX ${how} IF NOT EXISTS ${name} ON ${table} (${columns.join(", ")})${rows}`);
}
