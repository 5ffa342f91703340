const sqliteIoError = 10;
const sqliteCorrupt = 11;
const sqliteNotADatabase = 26;

/** Whether SQLite's result code says that the file could not be read or written as it should be. */
export function isDamage(resultCode: number | undefined): boolean {
  return [sqliteIoError, sqliteCorrupt, sqliteNotADatabase].includes(primaryCodeOf(resultCode));
}

/** Whether the system could not read or write the file, whatever is in it. */
export function isReadError(resultCode: number | undefined): boolean {
  return primaryCodeOf(resultCode) === sqliteIoError;
}

/** The low byte; the rest says more about it. */
function primaryCodeOf(resultCode = 0): number {
  return resultCode & 0xff;
}
