import { DatabaseSync } from "node:sqlite";
import { Kysely } from "kysely";
import { migrateUp } from "../sql/migrate.ts";
import type { Schema } from "../sql/schema.ts";
import type { SqlEngine } from "../sql/sql-engine.ts";
import { createSqlKeyStore, forgetExpiredAnswers } from "../sql/sql-key-store.ts";
import { createSqlRootKeyStore } from "../sql/sql-root-key-store.ts";
import type { Store } from "../store.ts";
import { createSqliteDialect, toQueryResult, toStatement } from "./sqlite-dialect.ts";
import { SqliteWriter, type SqliteWriterOptions } from "./sqlite-writer.ts";

export interface SqliteEngine extends SqlEngine {
  readonly writer: SqliteWriter;
  close(): Promise<void>;
}

/** The embedded store: one file, one process. The caller holds the claim on the folder. */
export async function openSqliteStore(options: SqliteWriterOptions): Promise<Store> {
  const engine = await openSqliteEngine(options);
  try {
    await migrateUp(engine, options.clock.nowMs());
  } catch (error) {
    // Otherwise the writer thread would live on, and the process with it.
    await engine.close();
    throw error;
  }
  return {
    keys: createSqlKeyStore(engine),
    rootKeys: createSqlRootKeyStore(engine),
    usageLanes: [engine.writer],
    permitLanes: [engine.writer],
    tidy: (nowMs) => forgetExpiredAnswers(engine, nowMs),
    close: () => engine.close(),
  };
}

export async function openSqliteEngine(options: SqliteWriterOptions): Promise<SqliteEngine> {
  const writer = await SqliteWriter.open(options);
  // A connection of its own for reading, on the event loop: in WAL mode it never waits for the writer, and a look-up
  // takes microseconds where a hop to another thread would take tens of them.
  const reader = new DatabaseSync(options.file, { readOnly: true, timeout: 5000 });
  return {
    db: new Kysely<Schema>({ dialect: createSqliteDialect(reader, writer) }),
    async atomically(queries) {
      const results = await writer.run(queries.map(toStatement));
      return results.map((result) => toQueryResult(result));
    },
    ledgerNowMs: async () => options.clock.nowMs(),
    writer,
    async close() {
      if (reader.isOpen) reader.close();
      await writer.close();
    },
  };
}
