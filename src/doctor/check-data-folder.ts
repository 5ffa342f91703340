import { accessSync, constants, statSync } from "node:fs";
import { resolve } from "node:path";
import { migrations } from "../store/sql/migrations.ts";
import { copiedProblem } from "../store/sqlite/copied-mark.ts";
import { DataFolderError, databaseFileIn } from "../store/sqlite/data-folder.ts";
import { type DataFileFacts, inspectDataFile } from "../store/sqlite/inspect-data-file.ts";
import { quote } from "./check-files.ts";
import { nearestThatExists } from "./nearest-folder.ts";
import { reportEmptyStore, reportSchema } from "./report-schema.ts";
import type { Check, Report } from "./run-checks.ts";

/** The folder can be used, and the file of the embedded store in it, if that is where the data is. */
export function checkDataFolder(dataDir: string, isEmbedded: boolean, mustExist: boolean): Check {
  return {
    area: "data folder",
    async run(report) {
      const folder = resolve(dataDir);
      const problem = folderProblem(folder);
      if (problem !== undefined) {
        const fix = `sudo install -d -o "$(id -un)" -m 700 ${quote(folder)}, or set LATCHKEY_DATA_DIR to a folder of yours.`;
        return report.found(isEmbedded ? "data-folder-unusable" : "data-folder-unwritable", problem, fix);
      }
      if (!isEmbedded) return report.looked(`${folder} can be written to`);
      const copied = copiedProblem(folder);
      if (copied !== undefined) report.found("data-folder-copied", copied.problem, copied.fix);
      const file = databaseFileIn(folder);
      try {
        const facts = await inspectDataFile(file, report.signal);
        if (mustExist && facts.isEmpty) reportEmptyStore(`the data folder ${folder}`, report);
        else reportDataFile(file, facts, report);
      } catch (error) {
        if (!(error instanceof DataFolderError)) throw error;
        const fix = "mv the data folder away, then latchkey restore BACKUP (a file that latchkey backup has made).";
        report.found("data-file-missing", error.message, fix);
      }
    },
  };
}

/** Why the folder cannot be used. One that is not there is made by the start. */
export function folderProblem(folder: string): string | undefined {
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
    report.looked(`${file} is made by the first start${use}`);
    return;
  }
  const size = `${(bytes / 2 ** 20).toFixed(1)} MiB`;
  report.looked(`${file}, ${size}${check?.outcome === "sound" ? ", read and sound" : ""}${use}`);
  if (check?.outcome === "damaged") {
    report.found(
      "data-file-damaged",
      `the data file ${file} is damaged: ${check.reason}`,
      "Stop the service, move the data folder away, and latchkey restore BACKUP: " +
        "docs/operations.md#a-damaged-or-lost-data-file-embedded.",
    );
  } else if (check?.outcome === "unwritten") {
    report.found(
      "data-file-damaged",
      `the data file ${file} is in the system's cache only: ${check.reason}`,
      "latchkey backup FILE on another disk, before anything is stopped or unmounted: " +
        "docs/operations.md#a-damaged-or-lost-data-file-embedded.",
    );
  } else if (check?.outcome !== "sound") {
    const reason = check?.reason ?? (bytes > 0 ? `it has ${size}` : "it is in use");
    report.found(
      "data-file-unchecked",
      `the data file ${file} was not checked for damage: ${reason}`,
      "Start the service: it checks the file while it serves, and its log says what it found.",
    );
  }
  if (applied !== undefined) reportSchema(applied, migrations, report);
}
