import { existsSync } from "node:fs";
import type { Ambient } from "../ambient/ambient.ts";
import { createMetrics } from "../ambient/metrics.ts";
import type { Settings } from "../config/settings.ts";
import type { Secret } from "../domain/secret.ts";
import { type CopyOptions, copyStore, type TableCounts } from "../store/copy-store.ts";
import { CopyTarget } from "../store/postgres/copy-target.ts";
import { migrateUp } from "../store/sql/migrate.ts";
import { noteClosed } from "../store/sqlite/clean-stop.ts";
import { markCopied } from "../store/sqlite/copied-mark.ts";
import { claimDataFolder, DataFolderError, databaseFileIn } from "../store/sqlite/data-folder.ts";
import { openSqliteEngine, type SqliteEngine } from "../store/sqlite/open-sqlite-store.ts";

interface CopyDataOptions extends Pick<Ambient, "clock" | "random">, Pick<CopyOptions, "onProgress"> {
  readonly settings: Pick<Settings, "dataDir">;
  readonly copyTo: Secret;
}

/**
 * Copies the data folder, which must not be served meanwhile, to a Postgres. If the target has fewer rows at the end, or
 * more, the copy is not finished.
 */
export async function copyDataFolder(options: CopyDataOptions): Promise<readonly TableCounts[]> {
  const { settings, copyTo, clock, random, onProgress } = options;
  const { dataDir } = settings;
  if (!existsSync(databaseFileIn(dataDir))) throw new DataFolderError(`there is no Latchkey data in ${dataDir}`);
  const folder = claimDataFolder(dataDir);
  let source: SqliteEngine | undefined;
  let target: CopyTarget | undefined;
  try {
    source = await openSound(folder.databaseFile, options);
    target = new CopyTarget(copyTo.reveal());
    const newId = () => Buffer.from(random.bytes(12)).toString("base64url");
    const onServable = () => markCopied(dataDir);
    return await copyStore(source, target, { nowMs: clock.nowMs(), newId, onServable, onProgress });
  } finally {
    await target?.close();
    await source?.close();
    if (source !== undefined) noteClosed(folder.databaseFile);
    folder.release();
  }
}

/** The file with this version's schema. A damaged one is not copied. */
async function openSound(file: string, { clock }: Pick<Ambient, "clock">): Promise<SqliteEngine> {
  const engine = await openSqliteEngine({ file, clock, metrics: createMetrics(), checkFirst: true });
  try {
    const { checked } = engine.writer;
    if (checked?.outcome !== "sound")
      throw new DataFolderError(
        `the data file ${file} is not sound (${checked?.reason}): restore a backup, and copy that`,
      );
    await migrateUp(engine, clock.nowMs());
    return engine;
  } catch (error) {
    await engine.close();
    throw error;
  }
}
