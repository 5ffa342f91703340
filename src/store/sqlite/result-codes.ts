const sqliteIoError = 10;
const sqliteCorrupt = 11;
const sqliteNotADatabase = 26;

/** Whether SQLite's result code says that the file could not be read or written properly. */
export function isDamage(resultCode: number | undefined): boolean {
  return [sqliteIoError, sqliteCorrupt, sqliteNotADatabase].includes(primaryCodeOf(resultCode));
}

/** Whether the system could not read or write the file, independent of its content. */
export function isReadError(resultCode: number | undefined): boolean {
  return primaryCodeOf(resultCode) === sqliteIoError;
}

/** The low byte; the other bits give details. */
function primaryCodeOf(resultCode = 0): number {
  return resultCode & 0xff;
}
