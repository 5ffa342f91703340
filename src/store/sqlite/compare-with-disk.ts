import { closeSync, constants, openSync, readSync } from "node:fs";

/**
 * Whether a file is on the disk as the system's cache shows it. `unsupported`: the system, or this file system, cannot read
 * past its cache.
 */
export type DiskComparison = "same" | "different" | "unsupported" | { readonly failed: string };

/** Reads into the buffer from this position on. Answers how many bytes: fewer at the end of the file. */
export type ReadAt = (buffer: Buffer, at: number) => number;

const pieceBytes = 2 ** 20;
const attemptsMax = 100;
/** What opening a file or reading it answers where direct reads are not supported. */
const unsupportedCodes: readonly (string | undefined)[] = ["EINVAL", "ENOTSUP", "EOPNOTSUPP"];

/**
 * Compares the data file and its log with the disk. After a write has failed they can differ for good: the system keeps such a
 * page in its cache as if it had been written. Closing a file drops all locks that this process has on it, so no connection to
 * the file may be open in this process meanwhile. Others may write to it.
 */
export function compareWithDisk(file: string): DiskComparison {
  try {
    return [file, `${file}-wal`].every(isOnDisk) ? "same" : "different";
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    return unsupportedCodes.includes(code) ? "unsupported" : { failed: message };
  }
}

function isOnDisk(path: string): boolean {
  const opened: number[] = [];
  const open = (flags: number): ReadAt => {
    const fd = openSync(path, flags);
    opened.push(fd);
    return (buffer, at) => readSync(fd, buffer, 0, buffer.length, at);
  };
  try {
    return isSame(open(constants.O_RDONLY), open(constants.O_RDONLY | directFlag()));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return true;
    throw error;
  } finally {
    for (const fd of opened) closeSync(fd);
  }
}

/** Only Linux has it. */
function directFlag(): number {
  if (constants.O_DIRECT === undefined) throw Object.assign(new Error("no direct reads"), { code: "ENOTSUP" });
  return constants.O_DIRECT;
}

/** Throws if the file changes too often to be compared. */
export function isSame(readCached: ReadAt, readDisk: ReadAt): boolean {
  const [before, onDisk, after] = [alignedBuffer(), alignedBuffer(), alignedBuffer()];
  for (let at = 0; ; at += pieceBytes) {
    let attempts = 0;
    let length = readCached(before, at);
    while (!isEqual(before, length, onDisk, readDisk(onDisk, at))) {
      const lengthAfter = readCached(after, at);
      // It has not changed meanwhile: the disk has something else.
      if (isEqual(before, length, after, lengthAfter)) return false;
      if (++attempts === attemptsMax) throw new Error("the file changes too often to be compared with the disk");
      after.copy(before);
      length = lengthAfter;
    }
    if (length < pieceBytes) return true;
  }
}

function isEqual(one: Buffer, lengthOfOne: number, other: Buffer, lengthOfOther: number): boolean {
  return lengthOfOne === lengthOfOther && one.compare(other, 0, lengthOfOther, 0, lengthOfOne) === 0;
}

/** Direct reads need memory that begins with a page of the system. V8 gives whole pages to buffers that could be resized. */
function alignedBuffer(): Buffer {
  return Buffer.from(new ArrayBuffer(pieceBytes, { maxByteLength: pieceBytes }));
}
