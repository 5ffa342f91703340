import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { backup, DatabaseSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import { compareMigrations } from "../sql/migrate.ts";
import { migrations } from "../sql/migrations.ts";
import { checkData } from "./check-data.ts";
import { noteClosed } from "./clean-stop.ts";
import { claimDataFolder, DataFolderError, databaseFileIn } from "./data-folder.ts";

/** Pages of one step: 8 MB. Between steps the progress is reported. */
const pagesOfStep = 2048;

export interface RestoreOptions {
  /** A text that no store had before. */
  readonly epoch: string;
  readonly onProgress: (what: string, done: number, total: number) => void;
}

/**
 * Puts a backup into a data folder that has no data. The file is checked first. It gets its name when it is complete, so
 * that a service never finds a part of it; an attempt that was interrupted can be repeated.
 */
export async function restoreDataFolder(path: string, backupFile: string, options: RestoreOptions): Promise<void> {
  refuseData(path);
  const source = openBackup(backupFile);
  try {
    checkBackup(source, backupFile);
    const folder = claimDataFolder(path);
    try {
      // Once more: until the claim another process could have begun to serve it.
      refuseData(path);
      await copyInto(folder.databaseFile, source, options);
    } finally {
      folder.release();
    }
  } finally {
    source.close();
  }
}

/** Also a write-ahead log alone: SQLite would add its content to the restored file. */
function refuseData(path: string): void {
  const file = databaseFileIn(path);
  const found = [file, `${file}-wal`].find((each) => existsSync(each));
  if (found !== undefined)
    throw new DataFolderError(`${found} exists: a backup is restored into a folder without data`);
}

/** Opens the file without writing anything beside it, so that it can lie in a folder that is read-only. */
function openBackup(file: string): DatabaseSync {
  if (!existsSync(file)) throw new DataFolderError(`there is no file ${file}`);
  if (existsSync(`${file}-wal`)) {
    throw new DataFolderError(`${file} is a data file in use, not a backup: make one with latchkey backup`);
  }
  const url = pathToFileURL(file);
  url.searchParams.set("immutable", "1");
  return new DatabaseSync(url, { readOnly: true });
}

function checkBackup(source: DatabaseSync, file: string): void {
  const names = migrationsOf(source);
  if (names === undefined) throw new DataFolderError(`${file} is not a backup of Latchkey`);
  compareMigrations(names, migrations, "the backup was made");
  const checked = checkData(source);
  if (checked.outcome !== "sound") throw new DataFolderError(`${file} is not sound (${checked.reason})`);
}

/** Undefined if the file is not a database, or none of ours. */
function migrationsOf(source: DatabaseSync): string[] | undefined {
  try {
    const rows = source.prepare("SELECT name FROM schema_migrations").all() as { name: string }[];
    return rows.length === 0 ? undefined : rows.map(({ name }) => name);
  } catch {
    return undefined;
  }
}

async function copyInto(databaseFile: string, source: DatabaseSync, { epoch, onProgress }: RestoreOptions) {
  const partial = `${databaseFile}.restoring`;
  removeAll(partial);
  try {
    const progress = ({ totalPages, remainingPages }: { totalPages: number; remainingPages: number }) =>
      onProgress("pages", totalPages - remainingPages, totalPages);
    const pages = await backup(source, partial, { rate: pagesOfStep, progress });
    onProgress("pages", pages, pages);
    const copy = new DatabaseSync(partial);
    // A position in the feed of the state before means nothing in this one.
    copy.prepare("UPDATE change_feed SET epoch = ?").run(epoch);
    copy.close();
    synchronise(partial);
    renameSync(partial, databaseFile);
    synchronise(dirname(databaseFile));
    noteClosed(databaseFile);
  } catch (error) {
    removeAll(partial);
    throw error;
  }
}

function removeAll(file: string): void {
  for (const end of ["", "-wal", "-shm", "-journal"]) rmSync(`${file}${end}`, { force: true });
}

/** What was written is on the disk when this returns. */
function synchronise(path: string): void {
  const fd = openSync(path, "r");
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}
