import type { Schema } from "./schema.ts";

type Table = keyof Schema;

/**
 * What `latchkey copy` does with each table: the primary key of those that it copies, and why it leaves out the others.
 * They are copied in this order, so that each row finds the rows that it refers to.
 */
const tables: { readonly [Name in Table]: { readonly key: keyof Schema[Name] & string } | { readonly why: string } } = {
  apis: { key: "id" },
  keys: { key: "digest" },
  ending_secrets: { key: "digest" },
  owners: { key: "id" },
  counters: { key: "subject" },
  permit_windows: { key: "subject" },
  root_keys: { key: "id" },
  events: { key: "id" },
  idempotency: { key: "lookup" },
  changes: { why: "the target's feed begins a new epoch" },
  change_feed: { why: "likewise; what else it says is taken over at the end" },
  unfinished_copy: { why: "it belongs to the copy" },
  schema_migrations: { why: "each engine has its own" },
};

/** Every table of the schema that both engines share. */
export const tableNames = Object.keys(tables) as readonly Table[];

export interface CopiedTable {
  readonly table: Table;
  /** Its primary key: one column. */
  readonly key: string;
}

export const copiedTables: readonly CopiedTable[] = Object.entries(tables).flatMap(([table, what]) =>
  "key" in what ? [{ table: table as Table, key: what.key }] : [],
);

/** In SQL of both engines: a SELECT that finds a row if one of the tables that are there has data. Else the store is empty. */
export function findDataText(tablesThere: readonly string[]): string {
  const filled = copiedTables.filter(({ table }) => tablesThere.includes(table));
  return `SELECT 1 WHERE ${["1 = 0", ...filled.map(({ table }) => `EXISTS (SELECT 1 FROM ${table})`)].join(" OR ")}`;
}
