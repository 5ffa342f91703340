import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";

/** The folder cannot be used. The message explains it to the person who started the service. */
export class DataFolderError extends Error {
  override readonly name = "DataFolderError";
}

export interface DataFolder {
  readonly databaseFile: string;
  release(): void;
}

export function databaseFileIn(path: string): string {
  return join(path, "latchkey.db");
}

/**
 * Creates the folder and claims it for this process until `release` or the end of the process. The claim is an exclusive
 * transaction on a separate file, so the operating system drops it even after a crash. It is not on the data file, so
 * that a backup can read the data meanwhile.
 */
export function claimDataFolder(path: string): DataFolder {
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw new DataFolderError(`the data folder ${path} cannot be made: ${(error as NodeJS.ErrnoException).code}`);
  }
  const lock = openLock(path);
  return {
    databaseFile: databaseFileIn(path),
    release: () => lock.close(),
  };
}

const sqliteBusy = 5;

function openLock(path: string): DatabaseSync {
  let lock: DatabaseSync | undefined;
  try {
    lock = new DatabaseSync(join(path, "latchkey.lock"), { timeout: 0 });
    lock.exec("BEGIN EXCLUSIVE");
    return lock;
  } catch (error) {
    lock?.close();
    const inUse = (error as { errcode?: number }).errcode === sqliteBusy;
    throw new DataFolderError(
      inUse
        ? `the data folder ${path} is in use by another process`
        : `the data folder ${path} cannot be written to: ${(error as Error).message}`,
    );
  }
}
