import { copyFileSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import type { CheckResult } from "./check-data.ts";
import { type DataFileState, readDataFileState } from "./clean-stop.ts";
import { isDataFolderInUse } from "./data-folder.ts";
import { prepareFileCheck } from "./file-check.ts";

export interface DataFileFacts extends DataFileState {
  /** A service is using it. */
  readonly isInUse: boolean;
  /** Undefined for a file that is not there yet, or not checked because it is too large or began to be used meanwhile. */
  readonly check: CheckResult | undefined;
  /** Names of migrations, of a file that is sound. */
  readonly applied: readonly string[] | undefined;
}

/** A file up to this size is read as a whole. It takes two seconds. */
const checkedBytesMax = 128 * 2 ** 20;

/**
 * Reads the data file and changes nothing beside it. SQLite makes files beside one that it opens, unless it is told that
 * the file cannot change. A file with a write-ahead log that nobody uses, as after a crash, is read as a copy. Throws
 * `DataFolderError` if there was a file and it is gone. The signal stops the check.
 */
export async function inspectDataFile(file: string, signal: AbortSignal): Promise<DataFileFacts> {
  const isInUse = isDataFolderInUse(dirname(file));
  const facts = { ...readDataFileState(file), isInUse };
  if (facts.state === "new" || facts.bytes > checkedBytesMax) return { ...facts, check: undefined, applied: undefined };
  if (isInUse) return { ...facts, ...(await checkAndRead(file, signal)) };
  const copy = existsSync(`${file}-wal`) ? copyWithLog(file) : undefined;
  try {
    const unchanging = `${pathToFileURL(file).href}?immutable=1`;
    const read = await checkAndRead(copy?.file ?? unchanging, signal);
    // A service that was started meanwhile has written to it: what was read means nothing.
    return isDataFolderInUse(dirname(file))
      ? { ...facts, check: undefined, applied: undefined }
      : { ...facts, ...read };
  } finally {
    copy?.remove();
  }
}

async function checkAndRead(file: string, signal: AbortSignal): Promise<Pick<DataFileFacts, "check" | "applied">> {
  const checking = prepareFileCheck(file);
  const stop = () => void checking.stop();
  signal.addEventListener("abort", stop);
  checking.begin();
  const check = await checking.result;
  signal.removeEventListener("abort", stop);
  await checking.stop();
  return { check, applied: check.outcome === "sound" ? readMigrationNames(file) : undefined };
}

function readMigrationNames(file: string): readonly string[] {
  const db = new DatabaseSync(file, { readOnly: true, timeout: 1000 });
  try {
    const names = db.prepare("SELECT name FROM schema_migrations").all();
    return names.map(({ name }) => String(name));
  } finally {
    db.close();
  }
}

function copyWithLog(file: string): { readonly file: string; remove(): void } {
  const folder = mkdtempSync(join(tmpdir(), "latchkey-doctor-"));
  const copy = join(folder, "latchkey.db");
  for (const ending of ["", "-wal"]) copyFileSync(file + ending, copy + ending);
  return { file: copy, remove: () => rmSync(folder, { recursive: true, force: true }) };
}
