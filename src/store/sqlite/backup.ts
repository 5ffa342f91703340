import { existsSync, lstatSync } from "node:fs";
import { backup, DatabaseSync } from "node:sqlite";
import { DataFolderError, databaseFileIn } from "./data-folder.ts";

/** More pages than any file has. SQLite's own value for "all pages", a negative number, is refused by Node. */
const pagesMax = 2 ** 31 - 1;

/**
 * Copies the data as of one moment into a new file, also while the service runs on it. The copy is a data file in its
 * own right; `restoreDataFolder` puts it into a data folder.
 */
export async function backUpDataFolder(path: string, targetFile: string): Promise<void> {
  const databaseFile = databaseFileIn(path);
  if (!existsSync(databaseFile)) throw new DataFolderError(`there is no Latchkey data in ${path}`);
  // A link is there also if what it names is not: SQLite would write there.
  if (lstatSync(targetFile, { throwIfNoEntry: false }) !== undefined)
    throw new DataFolderError(`${targetFile} exists already`);
  const source = new DatabaseSync(databaseFile, { readOnly: true, timeout: 5000 });
  try {
    // All pages in one step: a copy in several steps would restart whenever the service writes in between.
    await backup(source, targetFile, { rate: pagesMax });
  } finally {
    source.close();
  }
}
