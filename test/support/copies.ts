import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as delay } from "node:timers/promises";
import pg from "pg";
import { openPgEngine } from "../../src/store/postgres/open-postgres-store.ts";
import { pgMigrations } from "../../src/store/postgres/pg-migrations.ts";
import { copiedTables } from "../../src/store/sql/copied-tables.ts";
import { migrateUp } from "../../src/store/sql/migrate.ts";
import { query } from "./run-statement.ts";
import { createTestDatabase } from "./test-database.ts";
import { atTestEnd } from "./test-end.ts";

/* Sources and targets of `latchkey copy`. */

const tables = copiedTables.map(({ table }) => table);

/** Opens the data file of a store that is stopped. */
export function inFile<Result>(dataDir: string, use: (db: DatabaseSync) => Result): Result {
  const db = new DatabaseSync(join(dataDir, "latchkey.db"));
  try {
    return use(db);
  } finally {
    db.close();
  }
}

const pausedTables = ["keys", "counters"] as const;
export type PausedTable = (typeof pausedTables)[number];

export interface PausedTarget {
  readonly url: string;
  /** Resolves when a batch of the table waits. */
  paused(table: PausedTable): Promise<void>;
  release(table: PausedTable): Promise<void>;
}

/** An empty target in which a row in the middle of each of these tables waits until it is released. */
export async function pausedTarget(): Promise<PausedTarget> {
  const url = await createTestDatabase();
  const engine = openPgEngine({ url, connectionsMax: 1 });
  await migrateUp(engine, 0, pgMigrations);
  await engine.close();
  const holder = new pg.Client({ connectionString: url });
  let isOver = false;
  atTestEnd(() => {
    isOver = true;
    return holder.end();
  });
  await holder.connect();
  await holder.query(`CREATE FUNCTION pause() RETURNS trigger LANGUAGE plpgsql AS
    'BEGIN PERFORM pg_advisory_xact_lock_shared(TG_ARGV[0]::int); RETURN NEW; END'`);
  for (const [lock, table] of pausedTables.entries()) {
    await holder.query(`CREATE TRIGGER pause BEFORE INSERT ON ${table} FOR EACH ROW
      WHEN (NEW.${table === "keys" ? "id" : "subject"} = 'bulk 5000') EXECUTE FUNCTION pause(${lock})`);
    await holder.query(`SELECT pg_advisory_lock(${lock})`);
  }
  const waiting = (lock: number) => `SELECT FROM pg_locks l JOIN pg_database d ON d.oid = l.database
    WHERE datname = current_database() AND locktype = 'advisory' AND NOT granted AND objid = ${lock}`;
  return {
    url,
    async paused(table) {
      while (!isOver && (await query(url, waiting(pausedTables.indexOf(table)))).rowCount === 0) await delay(10);
    },
    release: async (table) => void (await holder.query(`SELECT pg_advisory_unlock(${pausedTables.indexOf(table)})`)),
  };
}

/** Every copied row of both sides, table by table, in the order of its JSON. */
export async function rowsOf(dataDir: string, url: string): Promise<{ source: unknown; target: unknown }> {
  const ordered = (rows: readonly unknown[]) => rows.map((row) => JSON.stringify(row, sortedKeys)).sort();
  const source = tables.map((table) => ordered(inFile(dataDir, (db) => db.prepare(`SELECT * FROM ${table}`).all())));
  const target: string[][] = [];
  for (const table of tables) {
    const { rows } = await query(url, `SELECT to_json(t) AS row FROM ${table} t`);
    target.push(ordered(rows.map(({ row }) => row)));
  }
  return { source, target };
}

function sortedKeys(_: string, value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort());
}

/** Everything in the database that a command could have changed. */
export async function contentsOf(url: string): Promise<unknown> {
  const { rows } = await query(
    url,
    "SELECT c.relname, pg_stat_get_tuples_inserted(c.oid), c.relfilenode FROM pg_class c WHERE relnamespace = 'public'::regnamespace ORDER BY 1",
  );
  return rows;
}
