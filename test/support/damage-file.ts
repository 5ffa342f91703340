import { randomFillSync } from "node:crypto";
import { closeSync, openSync, readSync, statSync, writeSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";

const pageBytes = 4096;
const interiorIndexPage = 2;

/** Overwrites every fourth page with random bytes, in place: the file stays the same file. Without its schema it could not be opened. */
export function damageEveryFourthPage(file: string, phase = 0): void {
  const pages = statSync(file).size / pageBytes;
  const schema = schemaPages(file);
  for (let page = 2; page <= pages; page++) {
    if (page % 4 === phase && !schema.has(page)) overwritePage(file, page, randomFillSync(Buffer.alloc(pageBytes)));
  }
}

function schemaPages(file: string): ReadonlySet<number> {
  const db = new DatabaseSync(file, { readOnly: true });
  const pages = db.prepare("SELECT pageno FROM dbstat WHERE name = 'sqlite_schema'").all() as { pageno: number }[];
  db.close();
  if (pages.length === 0) throw new Error("the file has no schema");
  return new Set(pages.map(({ pageno }) => pageno));
}

/** Overwrites every other leaf of an index with its neighbour, as a disk does that writes to the wrong place. */
export function misplaceLeaves(file: string, index: string): void {
  const db = new DatabaseSync(file, { readOnly: true });
  const { rootpage } = db.prepare("SELECT rootpage FROM sqlite_master WHERE name = ?").get(index) as {
    rootpage: number;
  };
  db.close();
  const leaves = childrenOf(copyPage(file, rootpage));
  for (let i = 0; i + 1 < leaves.length; i += 2) {
    overwritePage(file, leaves[i] as number, copyPage(file, leaves[i + 1] as number));
  }
}

/** The pages below an interior page of an index: one in front of each cell, and the last one in the page's header. */
function childrenOf(page: Buffer): number[] {
  if (page.readUInt8(0) !== interiorIndexPage) throw new Error("the index is too small to have leaves");
  const cells = Array.from({ length: page.readUInt16BE(3) }, (_, i) => page.readUInt16BE(12 + 2 * i));
  return [...cells.map((cell) => page.readUInt32BE(cell)), page.readUInt32BE(8)];
}

/** The bytes of one page of a data file whose write-ahead log is empty. */
export function copyPage(file: string, page: number): Buffer {
  const fd = openSync(file, "r");
  const bytes = Buffer.alloc(pageBytes);
  readSync(fd, bytes, 0, pageBytes, offsetOf(page));
  closeSync(fd);
  return bytes;
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

function offsetOf(page: number): number {
  return (page - 1) * pageBytes;
}
