import { sql } from "./sql.ts";
import type { SqlEngine } from "./sql-engine.ts";

/**
 * The tables that `latchkey copy` copies, with their primary keys, in an order in which each row finds the rows that it refers
 * to. It leaves out `changes` and `change_feed`, because the target's feed begins a new epoch, and what each database has for
 * itself: `unfinished_copy` and `schema_migrations`.
 */
export const copiedTables: readonly CopiedTable[] = [
  { table: "apis", key: ["id"] },
  { table: "keys", key: ["digest"] },
  { table: "ending_secrets", key: ["digest"] },
  { table: "owners", key: ["id"] },
  { table: "counters", key: ["subject"] },
  { table: "readings", key: ["subject", "hour"] },
  { table: "readings_kept", key: ["slot"] },
  { table: "permit_windows", key: ["subject"] },
  { table: "root_keys", key: ["id"] },
  { table: "events", key: ["id"] },
  { table: "idempotency", key: ["lookup"] },
];

export interface CopiedTable {
  readonly table: string;
  /** The columns of its primary key. */
  readonly key: readonly string[];
}

/** The values of the primary key of a row. */
export type CopiedKey = readonly (string | number)[];

export function copiedKeyOf({ key }: CopiedTable, row: Readonly<Record<string, unknown>> = {}): CopiedKey {
  return key.map((column) => row[column] as string | number);
}

/** Every table of the schema that both engines share. */
export const tableNames: readonly string[] = [
  ...copiedTables.map(({ table }) => table),
  ...["changes", "change_feed", "unfinished_copy", "schema_migrations"],
];

/** In SQL of both engines: a SELECT that finds a row if one of the tables that are there has data. Else the store is empty. */
export function findDataText(tablesThere: readonly string[]): string {
  const filled = copiedTables.filter(({ table }) => tablesThere.includes(table));
  return `SELECT 1 WHERE ${["1 = 0", ...filled.map(({ table }) => `EXISTS (SELECT 1 FROM ${table})`)].join(" OR ")}`;
}

/*
 * The table `unfinished_copy` has at most one row. In a target of `latchkey copy` it says that the copy is not finished:
 * such a database is not served. In the source it says that the source has not been served since that copy was begun, so
 * that the copy can be continued.
 */

/** The id of the copy. */
export async function findUnfinishedCopy(engine: SqlEngine): Promise<string | undefined> {
  const [row] = await engine.read<{ id: string }>(sql`SELECT id FROM unfinished_copy`);
  return row?.id;
}

/** In the source, when a copy begins. */
export async function noteCopyBegun({ atomically }: SqlEngine, id: string): Promise<void> {
  await atomically([sql`DELETE FROM unfinished_copy`, sql`INSERT INTO unfinished_copy (slot, id) VALUES (1, ${id})`]);
}

/** In the source, when it is opened to be served: from now on a copy that was begun before is not like it any more. */
export async function endCopy(engine: SqlEngine): Promise<void> {
  // Most starts have nothing to write.
  if ((await findUnfinishedCopy(engine)) === undefined) return;
  await engine.atomically([sql`DELETE FROM unfinished_copy`]);
}
