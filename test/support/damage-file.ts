import { randomFillSync } from "node:crypto";
import { closeSync, fstatSync, openSync, readSync, writeSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";

const pageBytes = 4096;

export type Damage = "random bytes" | "pages in the wrong place";

/** Overwrites every fourth page from page 2 on, in place: the file stays the same file. */
export function damageEveryFourthPage(file: string, damage: Damage, phase = 0): void {
  const fd = openSync(file, "r+");
  const pages = fstatSync(fd).size / pageBytes;
  for (let page = 2; page <= pages; page++) {
    if (page % 4 !== phase) continue;
    if (damage === "random bytes") writeSync(fd, randomFillSync(Buffer.alloc(pageBytes)), 0, pageBytes, offsetOf(page));
    else if (page + 4 <= pages) writeSync(fd, readPage(fd, page + 4), 0, pageBytes, offsetOf(page));
  }
  closeSync(fd);
}

/** The bytes of one page of a data file whose write-ahead log is empty. */
export function copyPage(file: string, page: number): Buffer {
  const fd = openSync(file, "r");
  const copied = readPage(fd, page);
  closeSync(fd);
  return copied;
}

export function overwritePage(file: string, page: number, bytes: Buffer): void {
  const fd = openSync(file, "r+");
  writeSync(fd, bytes, 0, pageBytes, offsetOf(page));
  closeSync(fd);
}

/** Moves everything from the write-ahead log into the file. The file is then as after a crash that lost nothing. */
export function emptyLog(file: string): void {
  const db = new DatabaseSync(file);
  db.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  db.close();
}

function readPage(fd: number, page: number): Buffer {
  const bytes = Buffer.alloc(pageBytes);
  readSync(fd, bytes, 0, pageBytes, offsetOf(page));
  return bytes;
}

function offsetOf(page: number): number {
  return (page - 1) * pageBytes;
}
