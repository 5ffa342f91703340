import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { Log } from "../../ambient/log.ts";
import { guardStore } from "../guard-store.ts";
import type { KeyLookup, OwnerLookup } from "../key-lookup.ts";
import { endCopy } from "../sql/copied-tables.ts";
import { counterColumns } from "../sql/counter-row.ts";
import { isWindowOfKey } from "../sql/limit-windows.ts";
import { isNewStore, migrateUp, requireData, type StoreStartOptions } from "../sql/migrate.ts";
import { createIndexText, migrations } from "../sql/migrations.ts";
import { type Sql, sql } from "../sql/sql.ts";
import { createSqlChangeFeed } from "../sql/sql-change-feed.ts";
import type { SqlEngine } from "../sql/sql-engine.ts";
import { createSqlManagement } from "../sql/sql-management.ts";
import { createSqlRootKeyStore } from "../sql/sql-root-key-store.ts";
import { tidyTables } from "../sql/tidy.ts";
import type { Store } from "../store.ts";
import { noteClosed, noteOpened, readDataFileState } from "./clean-stop.ts";
import { DataFolderError } from "./data-folder.ts";
import { type PrepareCheck, prepareFileCheck } from "./file-check.ts";
import { FileHealth } from "./file-health.ts";
import { findOnReader, readOnReader } from "./find-on-reader.ts";
import { ListReader } from "./list-reader.ts";
import { OpenFiles } from "./open-files.ts";
import { SqliteWriter, type SqliteWriterOptions } from "./sqlite-writer.ts";
import { TurnReads } from "./turn-reads.ts";
import { toStatement } from "./writer-protocol.ts";

export interface SqliteEngine extends SqlEngine {
  readonly lookups: KeyLookup & OwnerLookup;
  readonly writer: SqliteWriter;
  readonly lists: ListReader;
  /** `leaveLog`: nothing more is written to the data file. The log may have the only copy that is on the disk. */
  close(options?: { readonly leaveLog: boolean }): Promise<void>;
}

export interface SqliteStoreOptions extends SqliteWriterOptions, StoreStartOptions {
  readonly log: Log;
  /** Replaces the check in tests. */
  readonly prepareCheck?: PrepareCheck;
}

/** A file up to this size is checked before it is used, which takes up to a tenth of a second. */
const checkFirstBytes = 8 * 2 ** 20;
/** A larger file is checked while it is in use: up to this size at every start, above it only after an unclean stop. */
const checkAlwaysBytes = 64 * 2 ** 20;

/**
 * Most memory for pages of the data file. It is taken page by page, as they are read; SQLite's default is 2 MB. The file is
 * not mapped into memory instead: reading beyond the end of a truncated file would then end the process with a signal.
 */
const readCacheKb = 256 * 1024;

/** The embedded store: one file, one process. The caller holds the claim on the folder. */
export async function openSqliteStore(options: SqliteStoreOptions): Promise<Store> {
  const { file, log, prepareCheck = prepareFileCheck } = options;
  const { state, bytes } = readDataFileState(file);
  const checkFirst = state === "failed" || (state !== "new" && bytes <= checkFirstBytes);
  const health = new FileHealth(file, { log, prepareCheck });
  if (!checkFirst && (state === "unclean" || (state === "clean" && bytes <= checkAlwaysBytes))) health.prepareCheck();
  let damage: unknown;
  const onDamage = (cause: unknown) => {
    damage = cause;
    health.suspect(cause);
  };
  const onFailedWrite = (cause: unknown) => {
    damage = cause;
    health.failWrite(cause);
  };
  const problem = () => health.problem;
  let engine: SqliteEngine | undefined;
  let isNew = false;
  try {
    engine = await openSqliteEngine({ ...options, checkFirst, onDamage, onFailedWrite, problem });
    if (engine.writer.checked !== undefined) await health.applyCheck(engine.writer.checked);
    // Nothing is written to a damaged file.
    if (health.problem === undefined) {
      if (options.mustExist) await requireData(engine, `the data folder ${dirname(file)}`);
      isNew = isNewStore(await migrateUp(engine, options.clock.nowMs(), migrations, options.onUpgrade));
      await endCopy(engine);
    }
  } catch (error) {
    await health.stop();
    // Otherwise the writer thread would keep the process alive.
    await engine?.close();
    if (damage === undefined) throw error;
    const reason = (damage as Error).message;
    throw new DataFolderError(`the data file ${file} is damaged (${reason}): put a backup into an empty data folder`);
  }
  // Logged only now: a refused start prints nothing but the reason.
  if (state === "unclean" || state === "failed") {
    const isSound = engine.writer.checked?.outcome === "sound" && health.problem === undefined;
    const result = isSound ? "was checked and is sound" : "is checked";
    log.info(`the data file is not known to have been closed in order: it ${result}`, { file });
  }
  if (isNew) options.onCreated?.();
  noteOpened(file);
  const files = await OpenFiles.open([file, `${file}-wal`, `${file}-shm`]);
  health.watch(files);
  const opened = engine;
  const { writer } = opened;
  const help = "With the embedded store: 1 while its file can be used and the last write to it found room.";
  const isUp = () => health.problem === undefined && !writer.isFull;
  options.metrics.gauge("latchkey_data_file_up", help, () => Number(isUp()));
  const store: Store = {
    keys: engine.lookups,
    management: createSqlManagement(engine),
    rootKeys: createSqlRootKeyStore(engine),
    changes: createSqlChangeFeed(engine),
    usageLanes: [writer],
    permitLanes: [writer],
    tidy: (nowMs, bounds) => tidyTables(opened, nowMs, bounds),
    async close() {
      // The check is stopped first: its open connection would keep the write-ahead log in place.
      const isSound = await health.stop();
      await opened.close({ leaveLog: health.hasFailed });
      await files.close();
      if (isSound) noteClosed(file);
    },
  };
  return guardStore(store, health);
}

/** A connection that can write moves the log into the file when it closes, unless another one has read the file and is open. */
function keepOpen(reader: DatabaseSync): void {
  try {
    reader.exec("SELECT 1 FROM sqlite_schema LIMIT 1");
  } catch {
    // The file cannot be read. Then its log cannot be moved into it either.
  }
}

const nextTransaction = sql`(SELECT max(transaction_id) + 1 FROM changes)`;

export async function openSqliteEngine(options: SqliteWriterOptions): Promise<SqliteEngine> {
  let reads: TurnReads | undefined;
  const writer = await SqliteWriter.open({ ...options, onReply: () => reads?.end() });
  // A separate connection for reading, on the event loop: in WAL mode it never waits for the writer, and a look-up takes
  // microseconds. A message to another thread would take tens of them.
  const reader = new DatabaseSync(options.file, { readOnly: true, timeout: 5000 });
  reader.exec(`PRAGMA cache_size = -${readCacheKb}`);
  const { onDamage = () => {} } = options;
  reads = new TurnReads(reader, onDamage);
  const reading = { reader, reads, onDamage };
  const lists = new ListReader({ file: options.file, onDamage });
  return {
    lists,
    lookups: findOnReader(reading),
    read: readOnReader(reading),
    atomically: (queries) => writer.run(queries.map(toStatement)),
    scan: (query) => lists.run(toStatement(query)),
    async migrate(claim, statements) {
      await writer.run([claim, ...statements].map(toStatement));
    },
    // No other process uses the file, and this one does not serve before its migrations are applied.
    async buildIndex(index) {
      await writer.run([toStatement(sql.raw(createIndexText(index)))]);
    },
    tablesThere: sql`(SELECT name FROM sqlite_schema WHERE type = 'table')`,
    inPrimaryKey: sql`WITHOUT ROWID`,
    // There is one writer: nothing happens between the statements of its transactions.
    forKeyShare: sql``,
    inTurn: (statement) => [statement],
    hasValue: (column, value) => sql`${sql.ref(column)} = ${value}`,
    isAnyOf: (column, query) => sql`${sql.ref(column)} IN (${query})`,
    isListOf: (column, texts) => sql`NOT EXISTS (
      SELECT 1 FROM json_each(${sql.ref(column)}) AS listed
      WHERE listed.value NOT IN (SELECT value FROM json_each(${JSON.stringify(texts)})))`,
    // The order of a CROSS JOIN is the order in which the engine reads.
    windowsOfKeys: (ids) => sql`SELECT subject FROM (${ids}) AS ids CROSS JOIN permit_windows WHERE ${isWindowOfKey}`,
    forUpdate: sql``,
    // There is one writer: the transaction that has not ended is the one that comes next.
    thisTransaction: nextTransaction,
    oldestOpenTransaction: nextTransaction,
    refilledCounter,
    ledgerHour: () => sql`ledger_hour()`,
    ledgerNowMs: async () => options.clock.nowMs(),
    writer,
    async close({ leaveLog } = { leaveLog: false }) {
      await lists.close();
      if (leaveLog) {
        keepOpen(reader);
        await writer.close();
      }
      if (reader.isOpen) reader.close();
      await writer.close();
    },
  };
}

/** By the functions of `registerRefills`. There is one writer, so the row is its own. */
function refilledCounter(subject: string): Sql {
  const columns = sql.raw(counterColumns.join(", "));
  return sql`refilled AS MATERIALIZED (
    SELECT subject, refilled_remaining(${columns}) AS available, refilled_through(${columns}) AS through_ms,
      credited - remaining AS spent
    FROM counters WHERE subject = ${subject}
  )`;
}
