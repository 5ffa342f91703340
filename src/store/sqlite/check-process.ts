// Checks a data file in a process of its own, when it is told to on standard input. Prints what it found as JSON.
import { DatabaseSync } from "node:sqlite";
import type { CheckResult } from "./file-check.ts";
import { isDamage } from "./result-codes.ts";

process.stdin.once("data", () => {
  process.stdout.write(JSON.stringify(check(process.argv[2] as string)));
  process.stdin.destroy();
});

function check(file: string): CheckResult {
  try {
    const db = new DatabaseSync(file, { readOnly: true, timeout: 60_000 });
    // Not `quick_check`: that one does not compare indexes with their tables, and a look-up goes through an index.
    const [found] = db.prepare("PRAGMA integrity_check(1)").all() as { integrity_check: string }[];
    if (found?.integrity_check !== "ok") return { outcome: "damaged", reason: String(found?.integrity_check) };
    // Each table can be whole and still be of another moment than the others.
    const orphan = db.prepare('SELECT "table" AS name FROM pragma_foreign_key_check LIMIT 1').get();
    if (orphan !== undefined) return { outcome: "damaged", reason: `a row of ${orphan.name} belongs to nothing` };
    db.close();
    return { outcome: "sound" };
  } catch (error) {
    const { errcode, message } = error as { errcode?: number; message: string };
    // A read error can pass. What SQLite calls malformed cannot.
    const isReadError = errcode !== undefined && (errcode & 0xff) === 10;
    return { outcome: isDamage(errcode) && !isReadError ? "damaged" : "unknown", reason: message };
  }
}
