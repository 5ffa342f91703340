import { askSharedServers, hasServers } from "./ask-shared-servers.ts";
import { postgresBinaries } from "./postgres-binaries.ts";
import { migratedDatabase } from "./postgres-server.ts";
import { query } from "./run-statement.ts";

/** Whether this run has servers. A suite that needs one says `describe.runIf(hasPostgres)`. */
export const hasPostgres = hasServers;

let made = 0;

/** A new database in the run's Postgres, with all tables and without rows. It goes with the server, at the end of the run. */
export function createTestDatabase(): Promise<string> {
  return createEmptyDatabase(`TEMPLATE ${migratedDatabase}`);
}

/** The same without tables, with these options. */
export async function createEmptyDatabase(options = ""): Promise<string> {
  // Installed here if it is missing: the process that has the server must not be held up.
  postgresBinaries();
  const url = new URL(await askSharedServers("postgres"));
  const name = `test_${process.pid}_${performance.timeOrigin.toFixed(0)}_${++made}`;
  await query(url.href, `CREATE DATABASE ${name} ${options}`);
  url.pathname = `/${name}`;
  return url.href;
}

/** A database that a whole file uses. `reset` brings every table back to what a migration leaves, in a few milliseconds. */
export async function createSharedDatabase(): Promise<{ readonly url: string; reset(): Promise<void> }> {
  const url = await createTestDatabase();
  const { rows } = await query(url, "SELECT tablename FROM pg_tables WHERE schemaname = 'public'");
  // Those of writers stay: a store that is open goes on.
  const tables = rows.map(({ tablename }) => tablename as string).filter((table) => table !== "usage_writers");
  const copy = tables.map((table) => `CREATE TABLE initial.${table} AS TABLE public.${table};`);
  await query(url, `CREATE SCHEMA initial; ${copy.join(" ")}`);
  const restore = tables.map(
    (table) => `DELETE FROM ${table}; INSERT INTO ${table} OVERRIDING SYSTEM VALUE TABLE initial.${table};`,
  );
  // Foreign keys are not checked meanwhile, so the order of the tables does not matter.
  const statements = `BEGIN; SET LOCAL session_replication_role = replica; ${restore.join(" ")} COMMIT`;
  return { url, reset: async () => void (await query(url, statements)) };
}
