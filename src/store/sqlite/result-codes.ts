const sqliteIoError = 10;
const sqliteCorrupt = 11;
const sqliteFull = 13;
const sqliteNotADatabase = 26;
/** SQLITE_IOERR_READ and SQLITE_IOERR_SHORT_READ. */
const readFailures: readonly number[] = [266, 522];

/** Whether SQLite's result code says that the file could not be read or written properly. */
export function isDamage(resultCode: number | undefined): boolean {
  return [sqliteIoError, sqliteCorrupt, sqliteNotADatabase].includes(primaryCodeOf(resultCode));
}

/** Whether the system could not read or write the file, independent of its content. */
export function isInputOutputError(resultCode: number | undefined): boolean {
  return primaryCodeOf(resultCode) === sqliteIoError;
}

/** Whether the system could not write the file. Then its cache may show what is not on the disk. */
export function isFailedWrite(resultCode = 0): boolean {
  return isInputOutputError(resultCode) && !readFailures.includes(resultCode);
}

/** Whether there was no room for a write. Nothing of it is in the file. */
export function isFull(resultCode: number | undefined): boolean {
  return primaryCodeOf(resultCode) === sqliteFull;
}

/** The low byte; the other bits give details. */
function primaryCodeOf(resultCode = 0): number {
  return resultCode & 0xff;
}
