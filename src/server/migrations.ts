import type { Clock } from "../ambient/clock.ts";
import { createMetrics } from "../ambient/metrics.ts";
import type { Settings } from "../config/settings.ts";
import type { BuildIndexOptions } from "../store/postgres/build-index.ts";
import { openPgEngine } from "../store/postgres/open-postgres-store.ts";
import { orRefused } from "../store/postgres/pg-error.ts";
import { pgMigrations } from "../store/postgres/pg-migrations.ts";
import { migrateUp, migrationStatus, requireData, type StoreStartOptions } from "../store/sql/migrate.ts";
import { type Migration, migrations } from "../store/sql/migrations.ts";
import type { SqlEngine } from "../store/sql/sql-engine.ts";
import { requireDataFile } from "../store/sqlite/clean-stop.ts";
import { claimDataFolder, databaseFileIn } from "../store/sqlite/data-folder.ts";
import { openSqliteEngine } from "../store/sqlite/open-sqlite-store.ts";

/* Migrations by hand, on the store that the settings name. They also run by themselves at every start. */

/** The names of those applied and those missing. */
export function readMigrations(settings: Settings, clock: Clock) {
  return withEngine(settings, clock, async (engine, known) => {
    const { applied, missing } = await migrationStatus(engine, known);
    return { applied, missing: missing.map((migration) => migration.name) };
  });
}

/** Applies what is missing and answers the names. */
export function applyMigrations(
  settings: Settings,
  clock: Clock,
  { onIndexBuild, onUpgrade }: Pick<BuildIndexOptions, "onIndexBuild"> & Pick<StoreStartOptions, "onUpgrade">,
): Promise<readonly string[]> {
  const migrate = (engine: SqlEngine, known: readonly Migration[]) =>
    migrateUp(engine, clock.nowMs(), known, onUpgrade);
  return withEngine(settings, clock, migrate, onIndexBuild);
}

async function withEngine<Result>(
  settings: Settings,
  clock: Clock,
  use: (engine: SqlEngine, known: readonly Migration[]) => Promise<Result>,
  onIndexBuild?: BuildIndexOptions["onIndexBuild"],
): Promise<Result> {
  const { databaseUrl, dataDir, storeMustExist } = settings;
  const useIt = async (engine: SqlEngine & { close(): Promise<void> }, known: readonly Migration[], where: string) => {
    try {
      if (storeMustExist) await requireData(engine, where);
      return await use(engine, known);
    } finally {
      await engine.close();
    }
  };
  if (databaseUrl !== undefined) {
    const engine = openPgEngine({ url: databaseUrl.reveal(), connectionsMax: 1, onIndexBuild });
    return useIt(engine, pgMigrations, "the database").catch((error: unknown) => {
      throw orRefused(error);
    });
  }
  if (storeMustExist) requireDataFile(databaseFileIn(dataDir));
  const folder = claimDataFolder(dataDir);
  const engine = await openSqliteEngine({ file: folder.databaseFile, clock, metrics: createMetrics() });
  return useIt(engine, migrations, `the data folder ${dataDir}`).finally(() => folder.release());
}
