import { copyFileSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import { generatedRootKeyId } from "../root-key-store.ts";
import { findDataText } from "../sql/copied-tables.ts";
import { meteredHourText } from "../sql/readings.ts";
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
  /** Whether it is known that there is no data, as `requireData` has it. */
  readonly isEmpty: boolean;
  /** Whether it is known that the generated root key is the only one. */
  readonly isGeneratedOnly: boolean;
  /** The latest hour that the meter of a counter is known to have reached. */
  readonly meteredHour: number | undefined;
}

const unread = {
  check: undefined,
  applied: undefined,
  isEmpty: false,
  isGeneratedOnly: false,
  meteredHour: undefined,
};

/** A file up to this size is read as a whole. It takes two seconds. */
const checkedBytesMax = 128 * 2 ** 20;

/**
 * Reads the data file and changes nothing beside it. SQLite makes files beside one that it opens, unless a flag says that
 * the file cannot change. A file with a write-ahead log that nobody uses, as after a crash, is read as a copy. Throws
 * `DataFolderError` if there was a file and it is gone. The signal stops the check.
 */
export async function inspectDataFile(file: string, signal: AbortSignal): Promise<DataFileFacts> {
  const isInUse = isDataFolderInUse(dirname(file));
  const facts = { ...readDataFileState(file), isInUse };
  if (facts.state === "new") return { ...facts, ...unread, isEmpty: true };
  if (facts.bytes > checkedBytesMax) return { ...facts, ...unread };
  if (isInUse) return { ...facts, ...(await checkAndRead(file, signal)) };
  const copy = existsSync(`${file}-wal`) ? copyWithLog(file) : undefined;
  try {
    const unchanging = `${pathToFileURL(file).href}?immutable=1`;
    const read = await checkAndRead(copy?.file ?? unchanging, signal);
    // A service that was started meanwhile has written to it: what was read means nothing.
    return isDataFolderInUse(dirname(file)) ? { ...facts, ...unread } : { ...facts, ...read };
  } finally {
    copy?.remove();
  }
}

async function checkAndRead(
  file: string,
  signal: AbortSignal,
): Promise<Omit<DataFileFacts, keyof DataFileState | "isInUse">> {
  const checking = prepareFileCheck(file);
  const stop = () => void checking.stop();
  signal.addEventListener("abort", stop);
  checking.begin();
  const check = await checking.result;
  signal.removeEventListener("abort", stop);
  await checking.stop();
  return check.outcome === "sound" ? { check, ...readTables(file) } : { ...unread, check };
}

function readTables(file: string): Pick<DataFileFacts, "applied" | "isEmpty" | "isGeneratedOnly" | "meteredHour"> {
  const db = new DatabaseSync(file, { readOnly: true, timeout: 1000 });
  try {
    const textsIn = (column: string, table: string) =>
      db
        .prepare(`SELECT ${column} AS text FROM ${table}`)
        .all()
        .map(({ text }) => String(text));
    const tables = textsIn("name", "sqlite_schema");
    return {
      applied: textsIn("name", "schema_migrations"),
      isEmpty: db.prepare(findDataText(tables)).get() === undefined,
      isGeneratedOnly: tables.includes("root_keys") && String(textsIn("id", "root_keys")) === generatedRootKeyId,
      meteredHour: tables.includes("readings") ? Number(db.prepare(meteredHourText).get()?.hour ?? 0) : undefined,
    };
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
