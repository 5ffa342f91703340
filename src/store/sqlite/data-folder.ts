import { existsSync, mkdirSync } from "node:fs";
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
    const { code } = error as NodeJS.ErrnoException;
    throw new DataFolderError(`the data folder ${path} cannot be made: ${code === "EEXIST" ? "it is a file" : code}`);
  }
  const lock = openLock(path);
  return {
    databaseFile: databaseFileIn(path),
    release: () => lock.close(),
  };
}

/** Whether another process has claimed the folder. Changes nothing, and keeps no lock. */
export function isDataFolderInUse(path: string): boolean {
  const file = lockFileIn(path);
  if (!existsSync(file)) return false;
  let lock: DatabaseSync | undefined;
  try {
    lock = new DatabaseSync(file, { readOnly: true, timeout: 0 });
    lock.prepare("SELECT count(*) FROM sqlite_master").get();
    return false;
  } catch (error) {
    if (isBusy(error)) return true;
    throw error;
  } finally {
    lock?.close();
  }
}

/** `isDataFolderInUse` reads the lock for a moment, which must not look like another service. */
const lockWaitMs = 100;
const sqliteBusy = 5;

function isBusy(error: unknown): boolean {
  return (error as { errcode?: number }).errcode === sqliteBusy;
}

function lockFileIn(path: string): string {
  return join(path, "latchkey.lock");
}

function openLock(path: string): DatabaseSync {
  let lock: DatabaseSync | undefined;
  try {
    lock = new DatabaseSync(lockFileIn(path), { timeout: lockWaitMs });
    lock.exec("BEGIN EXCLUSIVE");
    return lock;
  } catch (error) {
    lock?.close();
    const problem = isBusy(error)
      ? "is in use by another process"
      : `cannot be written to: ${(error as Error).message}`;
    throw new DataFolderError(`the data folder ${path} ${problem}`);
  }
}
