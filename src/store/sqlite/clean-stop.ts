import { closeSync, fsyncSync, openSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { DataFolderError } from "./data-folder.ts";

/*
 * A note beside the data file (`latchkey.db-state`) tells whether the file was closed in order. It names the size and the
 * time of the last change that the file had then. A crash needs no step of its own to make the note untrue: what a process
 * writes after it has opened the file changes the file or leaves a write-ahead log beside it.
 */

export interface DataFileState {
  /** `unclean`: not known to be as it was when it was closed in order. */
  readonly state: "new" | "clean" | "unclean";
  /** Of the file and the write-ahead log beside it. */
  readonly bytes: number;
}

/** To be called before the file is opened. Throws `DataFolderError` where there was a file and it is gone or empty. */
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
  const isClean = note === closedAs(stats) && logBytes === 0n;
  return { state: isClean ? "clean" : "unclean", bytes: Number(stats.size + logBytes) };
}

/** From now on a missing file is known to have been there. */
export function noteOpened(file: string): void {
  try {
    writeFileSync(noteFileOf(file), "opened\n", { flag: "wx" });
  } catch {
    // There is a note already. Or the disk takes none: then a lost file is taken for a new one, as it would be anyway.
  }
}

/** To be called after the last connection was closed, where the file is known to be sound. */
export function noteClosed(file: string): void {
  const stats = statsOf(file);
  // A log that is still there holds what the file does not.
  if (stats === undefined || statsOf(`${file}-wal`) !== undefined) return;
  const written = `${noteFileOf(file)}.new`;
  try {
    const fd = openSync(written, "w", 0o600);
    try {
      writeFileSync(fd, closedAs(stats));
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
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
