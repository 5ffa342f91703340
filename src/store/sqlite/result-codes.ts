// SQLITE_IOERR, SQLITE_CORRUPT and SQLITE_NOTADB.
const damageCodes = [10, 11, 26];

/** Whether SQLite's result code says that the file could not be read or written as it should be. */
export function isDamage(resultCode: number | undefined): boolean {
  // The low byte is the primary code; the rest says more about it.
  return resultCode !== undefined && damageCodes.includes(resultCode & 0xff);
}
