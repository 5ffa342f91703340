// The only writer of the data file, in a thread of its own: waiting for the disk must never stall the event loop.
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { parentPort, workerData } from "node:worker_threads";
import type { RefillInterval } from "../../domain/refill-calendar.ts";
import { remainingMax, settle, type UsageCounter } from "../../domain/usage.ts";
import type { Charge, ChargeResult } from "../usage-ledger.ts";
import type {
  JobResult,
  Statement,
  StatementResult,
  WriterFailure,
  WriterJob,
  WriterReply,
  WriterRequest,
} from "./writer-protocol.ts";

const preparedMax = 200;

if (parentPort === null) throw new Error("the writer runs in a worker thread");
const port = parentPort;
const db = openForWriting((workerData as { file: string }).file);
const prepared = new Map<string, StatementSync>();

port.on("message", (request: WriterRequest) => {
  if (request === "close") {
    db.close();
    reply("closed");
    port.close();
  } else {
    reply(commit(request.jobs));
  }
});
reply("ready");

function openForWriting(file: string): DatabaseSync {
  const opened = new DatabaseSync(file, { timeout: 5000, enableForeignKeyConstraints: true });
  opened.exec("PRAGMA journal_mode = WAL");
  // FULL: a commit returns when it is on the disk, so that a power cut loses nothing that was acknowledged.
  opened.exec("PRAGMA synchronous = FULL");
  opened.exec("PRAGMA journal_size_limit = 67108864");
  return opened;
}

/** Runs the jobs in one transaction. A job that fails is undone alone; the others are committed. */
function commit(jobs: readonly WriterJob[]): WriterReply {
  try {
    db.exec("BEGIN IMMEDIATE");
    const results = jobs.map(runAlone);
    db.exec("COMMIT");
    return { committed: results };
  } catch (error) {
    if (db.isTransaction) db.exec("ROLLBACK");
    return { aborted: failureOf(error) };
  }
}

function runAlone(job: WriterJob): JobResult {
  // Settling needs no savepoint: each of its charges is one statement, which SQLite undoes alone.
  if (job.kind === "settle") {
    return { kind: "settle", results: job.charges.map((charge) => settleCharge(charge, job.nowMs)) };
  }
  db.exec("SAVEPOINT job");
  try {
    const results = job.statements.map(run);
    db.exec("RELEASE job");
    return { kind: "statements", results };
  } catch (error) {
    // Some errors (a full disk) end the whole transaction: then no other job of it has happened either.
    if (!db.isTransaction) throw error;
    db.exec("ROLLBACK TO job");
    db.exec("RELEASE job");
    return { kind: "failed", failure: failureOf(error) };
  }
}

function run({ sql, parameters }: Statement): StatementResult {
  const statement = prepare(sql);
  if (statement.columns().length > 0) return { rows: statement.all(...parameters), changes: 0 };
  return { rows: [], changes: Number(statement.run(...parameters).changes) };
}

function settleCharge({ keyId, wanted }: Charge, nowMs: number): ChargeResult {
  try {
    const row = prepare("SELECT * FROM key_usage WHERE key_id = ?").get(keyId) as UsageRow | undefined;
    if (row === undefined) return { outcome: "missing" };
    const before = counterOf(row);
    const { granted, counter } = settle(before, wanted, nowMs);
    if (counter !== before) {
      prepare("UPDATE key_usage SET remaining = ?, refilled_through_ms = ? WHERE key_id = ?").run(
        counter.remaining,
        counter.refill?.refilledThroughMs ?? null,
        keyId,
      );
    }
    return { outcome: "settled", granted, remaining: counter.remaining };
  } catch (error) {
    if (!db.isTransaction) throw error;
    return { outcome: "failed", reason: failureOf(error).message };
  }
}

interface UsageRow {
  remaining: number;
  refill_interval: RefillInterval | null;
  refill_amount: number;
  refill_carry_over: number;
  refilled_through_ms: number;
}

/** Throws on a row that this code never wrote: settled as it stands, it could grant uses that nobody has. */
function counterOf(row: UsageRow): UsageCounter {
  if (!isSound(row)) throw new Error("the stored counter is damaged");
  return {
    remaining: row.remaining,
    refill:
      row.refill_interval === null
        ? undefined
        : {
            interval: row.refill_interval,
            amount: row.refill_amount,
            carryOver: row.refill_carry_over === 1,
            refilledThroughMs: row.refilled_through_ms,
          },
  };
}

function isSound(row: UsageRow): boolean {
  if (!isIntegerIn(0, row.remaining, remainingMax)) return false;
  if (row.refill_interval === null) return true;
  return (
    (row.refill_interval === "daily" || row.refill_interval === "monthly") &&
    isIntegerIn(1, row.refill_amount, remainingMax) &&
    isIntegerIn(0, row.refill_carry_over, 1) &&
    Number.isSafeInteger(row.refilled_through_ms)
  );
}

function isIntegerIn(min: number, value: number, max: number): boolean {
  return Number.isInteger(value) && value >= min && value <= max;
}

function prepare(sql: string): StatementSync {
  let statement = prepared.get(sql);
  if (statement === undefined) {
    if (prepared.size >= preparedMax) prepared.clear();
    statement = db.prepare(sql);
    prepared.set(sql, statement);
  }
  return statement;
}

function failureOf(error: unknown): WriterFailure {
  const { errcode, message } = error as { errcode?: number; message?: string };
  return { resultCode: errcode ?? 0, message: message ?? String(error) };
}

function reply(message: WriterReply): void {
  port.postMessage(message);
}
