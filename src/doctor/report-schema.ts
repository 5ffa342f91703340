import { hourAt, hourMs } from "../domain/usage.ts";
import { compareMigrations, SchemaTooNew, StoreEmpty } from "../store/sql/migrate.ts";
import type { Migration } from "../store/sql/migrations.ts";
import type { Report } from "./run-checks.ts";

/** Compares the migrations that a store has with those that this version knows, as a start does. */
export function reportSchema(applied: readonly string[], known: readonly Migration[], report: Report): void {
  try {
    const { missing } = compareMigrations(applied, known);
    if (missing.length === 0) {
      report.checked("the schema is this version's");
      return;
    }
    const names = missing.map(({ name }) => name).join(", ");
    report.found("schema-behind", `the schema lacks ${names}`, "latchkey migrate up, or start the service.");
  } catch (error) {
    if (!(error instanceof SchemaTooNew)) throw error;
    const fix = "Install the version of Latchkey that wrote it, or restore a backup of before the upgrade.";
    report.found("schema-too-new", error.message, fix);
  }
}

/** As a start with LATCHKEY_STORE=existing says it. */
export function reportEmptyStore(where: string, { found }: Report): void {
  const fix =
    "Mount the volume that has the data, correct LATCHKEY_DATA_DIR or DATABASE_URL, or restore a backup. To begin without any keys: LATCHKEY_STORE=create";
  found("store-empty", new StoreEmpty(where).message, fix);
}

/** Whether a clock that was ahead has let counters reach an hour that is to come. The next hour is that of removed counters. */
export function reportReadings(meteredHour: number | undefined, nowMs: number, { found }: Report): void {
  if (meteredHour === undefined || meteredHour <= hourAt(nowMs) + 1) return;
  const hour = new Date(meteredHour * hourMs).toISOString();
  const fix =
    "Set the clock of the ledger right, and see docs/usage.md#when-the-clock-is-changed: what is spent until then is not lost.";
  found("spending-ahead", `a counter has readings up to ${hour}, which is in the future`, fix);
}
