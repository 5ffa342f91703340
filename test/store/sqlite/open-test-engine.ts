import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { onTestFinished } from "vitest";
import { createLog } from "../../../src/ambient/log.ts";
import { createMetrics } from "../../../src/ambient/metrics.ts";
import { migrateUp } from "../../../src/store/sql/migrate.ts";
import { createSqlManagement } from "../../../src/store/sql/sql-management.ts";
import { openSqliteEngine, type SqliteStoreOptions } from "../../../src/store/sqlite/open-sqlite-store.ts";
import { tempFolder } from "../../support/temp-folder.ts";
import { TestClock } from "../../support/test-clock.ts";

/** A data file in a folder of its own, and all that opening it asks for. */
export function testOptions() {
  /** The number of jobs of every commit so far. */
  const commits: number[] = [];
  const deaths: unknown[] = [];
  const logLines: string[] = [];
  const options: SqliteStoreOptions = {
    file: join(tempFolder(), "latchkey.db"),
    clock: new TestClock(),
    metrics: { ...createMetrics(), batchCommitted: (_, items) => void commits.push(items) },
    log: createLog("debug", (line) => logLines.push(line)),
    onDeath: (cause) => void deaths.push(cause),
  };
  return { ...options, clock: options.clock as TestClock, options, commits, deaths, logLines };
}

/** The embedded engine with its tables and its parts at hand; closed with the test. */
export async function openTestEngine() {
  const test = testOptions();
  const engine = await openSqliteEngine(test.options);
  onTestFinished(() => engine.close());
  await migrateUp(engine, test.clock.nowMs());
  test.commits.length = 0;
  const { writer } = engine;
  return {
    ...test,
    engine,
    keys: { ...engine.lookups, ...createSqlManagement(engine) },
    settle: writer.settle.bind(writer),
    exchange: writer.exchange.bind(writer),
  };
}

/** Changes the data file behind the store's back, past every constraint. */
export function tamper(file: string, sql: string): void {
  const db = new DatabaseSync(file, { timeout: 5000 });
  db.exec("PRAGMA ignore_check_constraints = ON");
  db.exec(sql);
  db.close();
}

export function readRows(file: string, sql: string): Record<string, unknown>[] {
  const db = new DatabaseSync(file, { readOnly: true, timeout: 5000 });
  const statement = db.prepare(sql);
  statement.setReadBigInts(true);
  const rows = statement.all().map((row) => ({ ...row }));
  db.close();
  return rows;
}
