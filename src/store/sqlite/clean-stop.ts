import { readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { StoreEmpty } from "../sql/migrate.ts";
import { DataFolderError } from "./data-folder.ts";

/*
 * A note beside the data file (`latchkey.db-state`) says whether the file was closed cleanly. It contains the file's
 * size and modification time at that moment. After a crash the note is wrong without any further step: every write
 * after opening changes the file or leaves a write-ahead log beside it.
 */

const openedNote = "opened\n";
const failedNote = "a write failed\n";

export interface DataFileState {
  /** `unclean`: the file may have changed since it was closed cleanly, or never was. `failed`: a write to it has failed. */
  readonly state: "new" | "clean" | "unclean" | "failed";
  /** The size of the file with the write-ahead log beside it. */
  readonly bytes: number;
}

/** Must be called before the file is opened. Throws `DataFolderError` if there was a file and it is gone or empty. */
export function readDataFileState(file: string): DataFileState {
  const note = readNote(file);
  const stats = statsOf(file);
  if (stats === undefined || stats.size === 0n) {
    if (note === undefined) return { state: "new", bytes: 0 };
    throw new DataFolderError(
      `the data file ${file} is ${stats === undefined ? "missing" : "empty"}, but there was one: ` +
        `put a backup into an empty data folder, or remove ${noteFileOf(file)} to begin without any keys`,
    );
  }
  const logBytes = statsOf(`${file}-wal`)?.size ?? 0n;
  const bytes = Number(stats.size + logBytes);
  if (note === failedNote) return { state: "failed", bytes };
  const isClean = note === closedAs(stats) && logBytes === 0n;
  return { state: isClean ? "clean" : "unclean", bytes };
}

/** Throws `StoreEmpty` if there is no file, or an empty one. Makes nothing, not even the folder. */
export function requireDataFile(file: string): void {
  if (readDataFileState(file).state === "new") throw new StoreEmpty(`the data folder ${dirname(file)}`);
}

/** From now on it is known that the file existed, should it be missing. */
export function noteOpened(file: string): void {
  try {
    writeFileSync(noteFileOf(file), openedNote, { flag: "wx" });
  } catch {
    // There is a note already, or the disk is full. In that case a lost file would look like a first start.
  }
}

/**
 * Whether a write has failed and the file was not compared with the disk since: then the next start does so before it uses
 * the file. If the note is lost with a restart of the machine, so is the system's cache, and nothing differs from the disk.
 */
export function noteFailedWrite(file: string, hasFailed: boolean): void {
  try {
    writeFileSync(noteFileOf(file), hasFailed ? failedNote : openedNote);
  } catch {
    // The disk is full or read-only. A large file is then checked while it is in use.
  }
}

/** Must be called after the last connection was closed, and only if the file is known to be sound. */
export function noteClosed(file: string): void {
  const stats = statsOf(file);
  // A remaining log contains data that the file does not have.
  if (stats === undefined || statsOf(`${file}-wal`) !== undefined) return;
  const written = `${noteFileOf(file)}.new`;
  try {
    writeFileSync(written, closedAs(stats), { mode: 0o600, flush: true });
    renameSync(written, noteFileOf(file));
  } catch {
    // Without the note the next start checks the file.
  }
}

function noteFileOf(file: string): string {
  return `${file}-state`;
}

function readNote(file: string): string | undefined {
  try {
    return readFileSync(noteFileOf(file), "utf8");
  } catch {
    return undefined;
  }
}

function closedAs({ size, mtimeNs }: { size: bigint; mtimeNs: bigint }): string {
  return `closed ${size} bytes, changed ${mtimeNs}\n`;
}

function statsOf(path: string) {
  try {
    return statSync(path, { bigint: true });
  } catch {
    return undefined;
  }
}
