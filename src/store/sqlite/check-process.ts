// Checks a data file in a separate process. Starts on a message on standard input, and prints the result as JSON.
import { writeSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { fileURLToPath } from "node:url";
import { checkData, failedCheck } from "./check-data.ts";
import { compareWithDisk } from "./compare-with-disk.ts";

process.stdin.once("data", () => {
  writeSync(1, `${JSON.stringify(check(process.argv[2] as string))}\n`);
  process.stdin.destroy();
});

function check(file: string) {
  try {
    const comparison = compareWithDisk(file.startsWith("file:") ? fileURLToPath(file) : file);
    const db = new DatabaseSync(file, { readOnly: true, timeout: 60_000 });
    const result = checkData(db, comparison);
    db.close();
    return result;
  } catch (error) {
    return failedCheck(error);
  }
}
