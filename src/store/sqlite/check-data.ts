import type { DatabaseSync } from "node:sqlite";
import { counterOfOwner } from "../../domain/subject.ts";
import type { DiskComparison } from "./compare-with-disk.ts";
import { isDamage, isInputOutputError } from "./result-codes.ts";

export type CheckResult =
  /** `isOnDisk`: it is on the disk as it was read from the system's cache. Otherwise that is not known. */
  | { readonly outcome: "sound"; readonly isOnDisk?: boolean }
  /** The system's cache has the data, and the disk has something else. */
  | { readonly outcome: "unwritten"; readonly reason: string }
  | { readonly outcome: "damaged"; readonly reason: string }
  /** The check itself failed; it says nothing about the data. */
  | { readonly outcome: "unknown"; readonly reason: string };

/**
 * Reads all data of the file, from the system's cache as far as it is there. Takes a second for 64 MB, and minutes for
 * gigabytes. `comparison`: of that cache with the disk, made before.
 */
export function checkData(db: DatabaseSync, comparison: DiskComparison = "unsupported"): CheckResult {
  if (comparison === "different") return { outcome: "unwritten", reason: "the disk has not all that was written" };
  if (typeof comparison === "object") return { outcome: "unknown", reason: comparison.failed };
  try {
    // Not `quick_check`: it does not compare indexes with their tables, and look-ups use an index.
    const [found] = db.prepare("PRAGMA integrity_check(1)").all() as { integrity_check: string }[];
    if (found?.integrity_check !== "ok") return { outcome: "damaged", reason: String(found?.integrity_check) };
    // Each table can be intact and still be from another point in time than the others.
    const orphan = db
      .prepare(`SELECT "table" AS name FROM pragma_foreign_key_check ${countedForNothing} LIMIT 1`)
      .get();
    if (orphan !== undefined) return { outcome: "damaged", reason: `a row of ${orphan.name} belongs to nothing` };
    return { outcome: "sound", isOnDisk: comparison === "same" };
  } catch (error) {
    return failedCheck(error);
  }
}

/** Counts for a key that is not there. Up to the first slash a subject is the id of a key, or a mark of one letter. */
const countedForNoKey = ["counters", "permit_windows"].map(
  (table) => `SELECT '${table}' FROM ${table}
    WHERE substr(subject, 2, 1) <> '/' AND NOT EXISTS (
      SELECT 1 FROM keys WHERE id = substr(subject, 1, instr(subject || '/', '/') - 1))`,
);

/** Counts for an owner that is not there. */
const ownersCounters = counterOfOwner("");
const countedForNoOwner = [
  `SELECT 'counters' FROM counters WHERE substr(subject, 1, ${ownersCounters.length}) = '${ownersCounters}'
    AND NOT EXISTS (SELECT 1 FROM owners WHERE id = substr(subject, ${ownersCounters.length + 1}))`,
  `SELECT 'permit_windows' FROM permit_windows
    WHERE owner_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM owners WHERE id = owner_id)`,
];

const countedForNothing = [...countedForNoKey, ...countedForNoOwner].map((query) => `UNION ALL ${query}`).join(" ");

/** A read error can be temporary, so it is no result. What SQLite calls malformed stays malformed. */
export function failedCheck(error: unknown): CheckResult {
  const { errcode, message } = error as { errcode?: number; message: string };
  return { outcome: isDamage(errcode) && !isInputOutputError(errcode) ? "damaged" : "unknown", reason: message };
}
