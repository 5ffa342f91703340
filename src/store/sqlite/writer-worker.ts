// The only writer of the data file, in its own thread: waiting for the disk must never block the event loop.
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { parentPort, workerData } from "node:worker_threads";
import type { Charge } from "../usage-ledger.ts";
import { checkData } from "./check-data.ts";
import { compareWithDisk } from "./compare-with-disk.ts";
import { exchangeAsk } from "./permit-rows.ts";
import { isDamage, isFull } from "./result-codes.ts";
import { registerRefills, settleCharge } from "./usage-rows.ts";
import type {
  JobResult,
  NumberedResult,
  NumberedStatement,
  WriterFailure,
  WriterJob,
  WriterReply,
  WriterRequest,
  WriterSetup,
  WriterTime,
} from "./writer-protocol.ts";

/** About as often as SQLite's own checkpoints, which come with each commit above 1000 pages of log. */
const changesPerCheckpoint = 1000;
const logPagesMax = 1000;

if (parentPort === null) throw new Error("the writer runs in a worker thread");
const port = parentPort;
const setup = workerData as WriterSetup;
// Before the file is opened: see `compareWithDisk`.
const comparison = setup.checkFirst ? compareWithDisk(setup.file) : undefined;
const db = openForWriting(setup.file);
/** The statements of this file and of the ledgers: they are few. */
const prepared = new Map<string, StatementSync>();
const numbered = new Map<number, Numbered>();
/** The time of the current transaction. */
let nowMs = 0;
registerRefills(db, () => nowMs);
/** A problem with the file in the current transaction. */
let damage: WriterFailure | undefined;
/** Whether the last transaction that had something to write found no room for it. */
let hasNoRoom = false;
/**
 * The last checkpoint: the number of rows changed until then, and the pages of log that it found. The first commit makes
 * one, for the log of a process that was killed: otherwise it would grow with every kill.
 */
let checkpoint = { changes: 0, logPages: Number.POSITIVE_INFINITY };

port.on("message", (request: WriterRequest) => {
  if (request === "close") {
    db.close();
    reply("closed");
    port.close();
  } else {
    if (request.clearsNumbers) numbered.clear();
    reply(commit(request.jobs, request.time));
  }
});
reply({ opened: setup.checkFirst ? checkData(db, comparison) : undefined });

function openForWriting(file: string): DatabaseSync {
  const opened = new DatabaseSync(file, { timeout: 5000, enableForeignKeyConstraints: true });
  opened.exec("PRAGMA journal_mode = WAL");
  // FULL: a commit returns when it is on the disk, so that a power cut loses nothing that was acknowledged.
  opened.exec("PRAGMA synchronous = FULL");
  opened.exec("PRAGMA journal_size_limit = 67108864");
  // See `checkpointIfDue`.
  opened.exec("PRAGMA wal_autocheckpoint = 0");
  return opened;
}

/** Runs the jobs in one transaction. A job that fails is undone alone; the others are committed. */
function commit(jobs: readonly WriterJob[], time: WriterTime): WriterReply {
  damage = undefined;
  nowMs = time.nowMs;
  const [hadNoRoom, changesBefore] = [hasNoRoom, changedRows()];
  hasNoRoom = false;
  try {
    execute("BEGIN IMMEDIATE");
    const results = jobs.map((job) => runAlone(job, time.windowNowMs, jobs.length === 1));
    if (db.isTransaction) execute("COMMIT");
    const changes = changedRows();
    if (changes === changesBefore) hasNoRoom ||= hadNoRoom;
    checkpointIfDue(changes);
    return { committed: results, damage, isFull: hasNoRoom };
  } catch (error) {
    if (db.isTransaction) execute("ROLLBACK");
    const aborted = failureOf(error);
    return { aborted, isFull: hasNoRoom };
  }
}

/**
 * Moves the log into the data file from time to time. SQLite would do so by itself, but reports no error: pages that did not
 * reach the disk would be taken for written, and their copies in the log be overwritten. A changed row is a few pages of log.
 */
function checkpointIfDue(changes: number): void {
  // A log that was moved is begun again by the next commit that finds no reader in it.
  if (changes - checkpoint.changes < changesPerCheckpoint && checkpoint.logPages < logPagesMax) return;
  try {
    const { log } = prepare("PRAGMA wal_checkpoint(PASSIVE)").get() as { log: number };
    checkpoint = { changes, logPages: log };
  } catch (error) {
    failureOf(error);
  }
}

/** By this connection, since it was opened. */
function changedRows(): number {
  return (prepare("SELECT total_changes() AS changes").get() as { changes: number }).changes;
}

/** The only job of a transaction needs no savepoint, for which SQLite would copy each page before its first change. */
function runAlone(job: WriterJob, windowNowMs: number, isOnlyJob: boolean): JobResult {
  // The ledgers need no savepoint for one row: that is one statement, which SQLite undoes alone.
  if (job.kind === "settle") {
    const settleOne = orFailed((charge: Charge) => settleCharge(prepare, inSavepoint, charge, nowMs));
    return { kind: "settle", results: job.charges.map(settleOne) };
  }
  if (job.kind === "exchange") {
    return { kind: "exchange", results: job.asks.map(orFailed((ask) => exchangeAsk(prepare, ask, windowNowMs))) };
  }
  const runAll = () => job.statements.map(run);
  try {
    return { kind: "statements", results: isOnlyJob ? runAll() : inSavepoint(runAll) };
  } catch (error) {
    if (!db.isTransaction) throw error;
    if (isOnlyJob) execute("ROLLBACK");
    return { kind: "failed", failure: failureOf(error) };
  }
}

/** Undoes what the function has written if it throws. Some errors (a full disk) end the whole transaction instead. */
function inSavepoint<Result>(write: () => Result): Result {
  execute("SAVEPOINT job");
  try {
    const result = write();
    execute("RELEASE job");
    return result;
  } catch (error) {
    if (db.isTransaction) {
      execute("ROLLBACK TO job");
      execute("RELEASE job");
    }
    throw error;
  }
}

interface Numbered {
  readonly statement: StatementSync;
  readonly columns: readonly string[];
}

function run([number, parameters, sql]: NumberedStatement): NumberedResult {
  const { statement, columns } = numbered.get(number) ?? prepareNumbered(number, sql as string);
  const sentColumns = sql === undefined ? undefined : columns;
  // Its rows are lists of values.
  if (columns.length > 0) return [statement.all(...parameters) as unknown as readonly unknown[][], 0, sentColumns];
  return [[], Number(statement.run(...parameters).changes), sentColumns];
}

function prepareNumbered(number: number, sql: string): Numbered {
  const statement = db.prepare(sql);
  statement.setReturnArrays(true);
  const found = { statement, columns: statement.columns().map(({ name }) => name) };
  numbered.set(number, found);
  return found;
}

/** A row that cannot be settled fails alone, unless its error has ended the whole transaction. */
function orFailed<Item, Result>(
  settleOne: (item: Item) => Result,
): (item: Item) => Result | { outcome: "failed"; reason: string } {
  return (item) => {
    try {
      return settleOne(item);
    } catch (error) {
      if (!db.isTransaction) throw error;
      return { outcome: "failed", reason: failureOf(error).message };
    }
  };
}

/** `BEGIN` and the like are prepared too: `db.exec` would compile them each time. */
function execute(sql: string): void {
  prepare(sql).run();
}

function prepare(sql: string): StatementSync {
  let statement = prepared.get(sql);
  if (statement === undefined) {
    statement = db.prepare(sql);
    prepared.set(sql, statement);
  }
  return statement;
}

function failureOf(error: unknown): WriterFailure {
  const { errcode, message } = error as { errcode?: number; message?: string };
  const failure = { resultCode: errcode ?? 0, message: message ?? String(error) };
  if (isDamage(errcode)) damage = failure;
  if (isFull(errcode)) hasNoRoom = true;
  return failure;
}

function reply(message: WriterReply): void {
  port.postMessage(message);
}
