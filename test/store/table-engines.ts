import { openPgEngine } from "../../src/store/postgres/open-postgres-store.ts";
import { pgMigrations } from "../../src/store/postgres/pg-migrations.ts";
import { migrateUp } from "../../src/store/sql/migrate.ts";
import { type Migration, migrations } from "../../src/store/sql/migrations.ts";
import type { SqlEngine } from "../../src/store/sql/sql-engine.ts";
import { openSqliteEngine } from "../../src/store/sqlite/open-sqlite-store.ts";
import { createEmptyDatabase, hasPostgres } from "../support/test-database.ts";
import { atTestEnd } from "../support/test-end.ts";
import { testOptions } from "./sqlite/open-test-engine.ts";

/** A database whose tables a test reads and writes itself: `describe.each(tableEngines)("on $name", …)`. */
export interface TableEngine {
  readonly name: string;
  /** In order, as this version knows them. */
  readonly migrations: readonly Migration[];
  /** On new, empty tables, or those that these migrations make. It is closed with the test. */
  open(known?: readonly Migration[]): Promise<SqlEngine>;
}

const sqlite: TableEngine = {
  name: "SQLite",
  migrations,
  async open(known = migrations) {
    const engine = await openSqliteEngine(testOptions().options);
    atTestEnd(() => engine.close());
    await migrateUp(engine, 1, known);
    return engine;
  },
};

const postgres: TableEngine = {
  name: "Postgres",
  migrations: pgMigrations,
  async open(known = pgMigrations) {
    const engine = openPgEngine({ url: await createEmptyDatabase(), connectionsMax: 2 });
    atTestEnd(() => engine.close());
    await migrateUp(engine, 1, known);
    return engine;
  },
};

export const tableEngines: readonly TableEngine[] = hasPostgres ? [sqlite, postgres] : [sqlite];
