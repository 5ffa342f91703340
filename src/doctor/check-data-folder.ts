import { accessSync, constants, existsSync, statfsSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { systemClock } from "../ambient/clock.ts";
import { nearestThatExists } from "../config/nearest-folder.ts";
import type { Settings } from "../config/settings.ts";
import { shellWord } from "../domain/shell-word.ts";
import { rootKeyFileFix, rootKeyFileOf } from "../server/write-root-key.ts";
import { migrations } from "../store/sql/migrations.ts";
import { copiedProblem } from "../store/sqlite/copied-mark.ts";
import { DataFolderError, databaseFileIn } from "../store/sqlite/data-folder.ts";
import { type DataFileFacts, inspectDataFile } from "../store/sqlite/inspect-data-file.ts";
import { reportEmptyStore, reportReadings, reportSchema } from "./report-schema.ts";
import type { Report } from "./run-checks.ts";

const mebibyte = 2 ** 20;
/** The write-ahead log of the embedded store alone takes up to 64 MiB. */
const fullBelow = 64 * mebibyte;
const lowBelow = 512 * mebibyte;

/** Where the data is, and whether the embedded store is in it. */
export interface DataDir {
  readonly path: string;
  readonly isEmbedded: boolean;
}

/** The folder can be used, and the file of the embedded store in it, if that is where the data is. */
export async function checkDataFolder(
  { path, isEmbedded }: DataDir,
  { storeMustExist: mustExist = false, rootKeys }: Partial<Settings>,
  report: Report,
): Promise<void> {
  const folder = resolve(path);
  const problem = folderProblem(folder);
  if (problem !== undefined) {
    const fix = `sudo install -d -o "$(id -un)" -m 700 ${shellWord(folder)}, or set LATCHKEY_DATA_DIR to a folder of yours.`;
    return report.found(isEmbedded ? "data-folder-unusable" : "data-folder-unwritable", problem, fix);
  }
  if (!isEmbedded) return report.checked(`${folder} can be written to`);
  const copied = copiedProblem(folder);
  if (copied !== undefined) report.found("data-folder-copied", copied.problem, copied.fix);
  const file = databaseFileIn(folder);
  try {
    const facts = await inspectDataFile(file, report.signal);
    if (mustExist && facts.isEmpty) reportEmptyStore(`the data folder ${folder}`, report);
    else reportDataFile(file, facts, report);
    reportReadings(facts.meteredHour, systemClock.nowMs(), report);
    const rootKeyFile = rootKeyFileOf({ dataDir: folder, databaseUrl: undefined });
    if (facts.isGeneratedOnly && rootKeys?.length === 0 && !existsSync(rootKeyFile))
      report.found(
        "root-key-file-missing",
        `${rootKeyFile} is missing, and there is no other root key`,
        rootKeyFileFix,
      );
  } catch (error) {
    if (!(error instanceof DataFolderError)) throw error;
    const fix = "mv the data folder away, then latchkey restore BACKUP (a file that latchkey backup has made).";
    report.found("data-file-missing", error.message, fix);
  }
}

/** Why the folder cannot be used. One that is not there is made by the start. */
function folderProblem(folder: string): string | undefined {
  const nearest = nearestThatExists(folder);
  if (!statSync(nearest).isDirectory()) return `the data folder ${folder} cannot be made: ${nearest} is a file`;
  try {
    accessSync(nearest, constants.W_OK | constants.X_OK);
    return undefined;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const verb = nearest === folder ? "written to" : `made in ${nearest}`;
    return `the data folder ${folder} cannot be ${verb}: ${code}`;
  }
}

function reportDataFile(file: string, facts: DataFileFacts, report: Report): void {
  const { state, bytes, isInUse, check, applied } = facts;
  const use = isInUse ? "; in use by a running service" : "";
  if (state === "new") {
    report.checked(`${file} is made by the first start${use}`);
    return;
  }
  const size = `${(bytes / mebibyte).toFixed(1)} MiB`;
  report.checked(`${file}, ${size}${check?.outcome === "sound" ? ", read and sound" : ""}${use}`);
  const seeGuide = "docs/operations.md#a-damaged-or-lost-data-file-embedded.";
  if (check?.outcome === "damaged") {
    const fix = `Stop the service, move the data folder away, and latchkey restore BACKUP: ${seeGuide}`;
    report.found("data-file-damaged", `the data file ${file} is damaged: ${check.reason}`, fix);
  } else if (check?.outcome === "unwritten") {
    const problem = `the data file ${file} is in the system's cache only: ${check.reason}`;
    const fix = `latchkey backup FILE on another disk, before anything is stopped or unmounted: ${seeGuide}`;
    report.found("data-file-damaged", problem, fix);
  } else if (check?.outcome !== "sound") {
    const reason = check?.reason ?? (bytes > 0 ? `it has ${size}` : "it is in use");
    const fix = "Start the service: it checks the file while it serves, and its log says what it found.";
    report.found("data-file-unchecked", `the data file ${file} was not checked for damage: ${reason}`, fix);
  }
  if (applied !== undefined) reportSchema(applied, migrations, report);
}

/** Room for the data folder, which holds the store, or only a generated root key and saved windows. */
export function checkDisk({ path, isEmbedded }: DataDir, { checked, found }: Report): void {
  // A read-only file system says that it has no room, and nothing is written to it.
  if (!isEmbedded && folderProblem(resolve(path)) !== undefined) return;
  const folder = nearestThatExists(resolve(path));
  const { bavail, bsize } = statfsSync(folder);
  const freeBytes = bavail * bsize;
  const free = `${Math.floor(freeBytes / mebibyte)} MiB`;
  checked(`${free} free in ${folder}`);
  const fix = `Make room (du -xh ${folder} | sort -h | tail), or move the folder to a larger disk and set LATCHKEY_DATA_DIR.`;
  if (isEmbedded && freeBytes < fullBelow) found("disk-full", `${free} are free for the data in ${path}`, fix);
  else if (freeBytes < (isEmbedded ? lowBelow : fullBelow))
    found("disk-low", `${free} are free for the data folder ${path}`, fix);
}
