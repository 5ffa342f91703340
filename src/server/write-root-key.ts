import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { sha256 } from "../ambient/crypto.ts";
import type { Settings } from "../config/settings.ts";
import type { Secret } from "../domain/secret.ts";
import { DataFolderError } from "../store/sqlite/data-folder.ts";
import type { WrittenRootKey } from "../usecases/root-keys.ts";

/** The file for a generated root key. Each store has its own file: a root key of one is not valid for the other. */
export function rootKeyFileOf({ dataDir, databaseUrl }: Pick<Settings, "dataDir" | "databaseUrl">): string {
  return join(dataDir, databaseUrl === undefined ? "root-key" : "root-key-postgres");
}

/** What to do if its file is gone. */
export const rootKeyFileFix =
  "put the file back, or set a root key of your own: docs/operations.md, Replacing the root key";

/**
 * Writes a generated root key, readable by its owner only, before the key becomes valid. Replicas on Postgres may share
 * the folder: if the file exists, its key may become the valid one, so ours goes into another file first.
 */
export function writeRootKey(file: string, rootKey: Secret): WrittenRootKey {
  const text = `${rootKey.reveal()}\n`;
  const beside = `${file}-${sha256(text).slice(0, 8)}`;
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    const written = writeNew(file, text) ? file : beside;
    if (written === beside) writeNew(beside, text);
    return {
      commit: () => renameSync(written, file),
      rollback() {
        // The replica whose key became valid may have replaced our file with its own.
        if (readIfThere(written) === text) rmSync(written, { force: true });
      },
    };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new DataFolderError(`the generated root key cannot be written to ${dirname(file)}: ${code}`);
  }
}

/** Whether the file was not there before. */
function writeNew(file: string, text: string): boolean {
  try {
    writeFileSync(file, text, { mode: 0o600, flag: "wx", flush: true });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}

function readIfThere(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
}
