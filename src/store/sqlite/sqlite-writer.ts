import type { Ambient } from "../../ambient/ambient.ts";
import { anchored, type Clock } from "../../ambient/clock.ts";
import { type BatchEntry, KeyedBatcher } from "../../batching/keyed-batcher.ts";
import { Unavailable } from "../../domain/unavailable.ts";
import type { LedgerWatch } from "../ledger-watch.ts";
import type { PermitEngine, PermitResult, SubjectAsk } from "../permit-ledger.ts";
import { CheckViolation, type SqlResult, UniqueViolation } from "../sql/sql-engine.ts";
import type { Charge, ChargeResult, UsageEngine } from "../usage-ledger.ts";
import { AskedThread } from "./asked-thread.ts";
import type { CheckResult } from "./check-data.ts";
import { DataFolderError } from "./data-folder.ts";
import { isDamage, isFailedWrite } from "./result-codes.ts";
import { StatementNumbers } from "./statement-numbers.ts";
import type {
  JobResult,
  Statement,
  WriterFailure,
  WriterJob,
  WriterReply,
  WriterRequest,
  WriterSetup,
} from "./writer-protocol.ts";

const jobsQueuedMax = 10_000;

export interface SqliteWriterOptions extends Pick<Ambient, "clock" | "metrics"> {
  readonly file: string;
  /** Gets every reading of the wall clock, which refills follow. */
  readonly watch?: LedgerWatch;
  /** Replaces, in tests, the windows' clock, which cannot be set. */
  readonly windowClock?: Pick<Clock, "nowMs">;
  /**
   * The writer thread died. The outcome of its current work is unknown; only a new process can continue. Default: throws, which
   * ends this one.
   */
  readonly onDeath?: (cause: unknown) => void;
  /** Called before an answer of the writer thread is passed on. */
  readonly onReply?: () => void;
  /** Whether the file is to be checked before it is used: see `SqliteWriter.checked`. Default: false. */
  readonly checkFirst?: boolean;
  /** The file could not be read properly. */
  readonly onDamage?: (cause: unknown) => void;
  /** The file could not be written. */
  readonly onFailedWrite?: (cause: unknown) => void;
  /** Why nothing may be written to the file now. */
  readonly problem?: () => Unavailable | undefined;
}

/** The event loop's side of the writer thread. All waiting writes share one transaction and one flush to disk. */
export class SqliteWriter implements UsageEngine, PermitEngine {
  readonly #thread: AskedThread<WriterRequest, WriterReply>;
  readonly #options: SqliteWriterOptions;
  readonly #windowClock: Pick<Clock, "nowMs">;
  readonly #jobs: KeyedBatcher<JobEntry, JobResult<SqlResult>>;
  readonly #numbers = new StatementNumbers();
  /** From the moment the file is open until it is closed or the thread has died. */
  #serving = false;
  #checked: CheckResult | undefined;
  #isFull = false;

  /** Resolves when the file is open; throws `DataFolderError` when it cannot be opened. */
  static async open(options: SqliteWriterOptions): Promise<SqliteWriter> {
    const writer = new SqliteWriter(options);
    const reply = await writer.#thread.reply().catch((error: Error) => {
      const reason = error.cause instanceof Error ? error.cause.message : error.message;
      throw new DataFolderError(`the data file ${options.file} cannot be opened: ${reason}`);
    });
    writer.#serving = true;
    if (typeof reply === "object" && "opened" in reply) writer.#checked = reply.opened;
    return writer;
  }

  private constructor(options: SqliteWriterOptions) {
    const { file, clock, metrics, checkFirst = false, onDeath = rethrow, onReply } = options;
    this.#options = options;
    this.#windowClock = options.windowClock ?? anchored(clock);
    this.#jobs = new KeyedBatcher({
      name: "sqlite",
      commits: [(batch) => this.#commit(batch)],
      queueMax: jobsQueuedMax,
      clock,
      metrics,
    });
    const setup: WriterSetup = { file, checkFirst };
    const onExit = (cause: unknown) => {
      if (!this.#serving) return;
      this.#serving = false;
      onDeath(cause);
    };
    const program = new URL("./writer-worker.ts", import.meta.url);
    this.#thread = new AskedThread(program, setup, "writer thread", onExit, onReply);
  }

  /** The result of the file's check, if one was requested. */
  get checked(): CheckResult | undefined {
    return this.#checked;
  }

  /** Whether the last write found no room on the disk. */
  get isFull(): boolean {
    return this.#isFull;
  }

  /** Runs the statements as one transaction. Throws `UniqueViolation`, `CheckViolation` or `Unavailable`. */
  run(statements: readonly Statement[]): Promise<readonly SqlResult[]> {
    return this.#submit({ kind: "statements", statements }) as Promise<readonly SqlResult[]>;
  }

  settle(charges: readonly Charge[]): Promise<readonly ChargeResult[]> {
    return this.#submit({ kind: "settle", charges }) as Promise<readonly ChargeResult[]>;
  }

  exchange(asks: readonly SubjectAsk[]): Promise<readonly PermitResult[]> {
    return this.#submit({ kind: "exchange", asks }) as Promise<readonly PermitResult[]>;
  }

  async close(): Promise<void> {
    await this.#jobs.drained();
    if (!this.#serving) return;
    this.#serving = false;
    await this.#thread.request("close");
  }

  /** The results, which are of the job's kind. */
  async #submit(job: WriterJob<Statement>): Promise<readonly unknown[]> {
    const result = await new Promise<JobResult<SqlResult>>((resolve, reject) =>
      this.#jobs.add({ job, resolve, reject }),
    );
    if (result.kind === "failed") throw errorOf(result.failure);
    if (result.kind !== job.kind) throw new Error("the writer answered a job of another kind");
    return result.results;
  }

  /** Called by the batcher with each batch. */
  async #commit(batch: readonly JobEntry[]): Promise<readonly JobResult<SqlResult>[]> {
    if (!this.#serving) throw new Unavailable("nothing was written: the store is closed", { nothingDone: true });
    const { clock, watch, onDamage, onFailedWrite } = this.#options;
    // Also for those who asked before there was a problem: another checkpoint could overwrite the last sound copy.
    const problem = this.#options.problem?.();
    if (problem !== undefined) throw problem;
    const sentAtMs = clock.monotonicMs();
    const time = { nowMs: clock.nowMs(), windowNowMs: this.#windowClock.nowMs() };
    watch?.onClockReading({ ledgerMs: time.nowMs, sentAtMs, receivedAtMs: clock.monotonicMs() });
    const clearsNumbers = this.#numbers.clearIfMany();
    const jobs = batch.map(({ job }) => this.#numbered(job));
    const reply = await this.#thread.request({ jobs, time, clearsNumbers });
    if (typeof reply === "string" || "opened" in reply)
      throw new Error("the writer answered a batch with something else");
    const damage = "aborted" in reply ? reply.aborted : reply.damage;
    if (isFailedWrite(damage?.resultCode)) onFailedWrite?.(new Error(damage?.message));
    else if (isDamage(damage?.resultCode)) onDamage?.(new Error(damage?.message));
    this.#isFull = reply.isFull;
    if ("aborted" in reply)
      throw new Unavailable(`nothing was written: ${reply.aborted.message}`, { nothingDone: true });
    return reply.committed.map((result, i) => this.#named(batch[i]?.job, result));
  }

  #numbered(job: WriterJob<Statement>): WriterJob {
    if (job.kind !== "statements") return job;
    return { kind: "statements", statements: job.statements.map((each) => this.#numbers.toNumbered(each)) };
  }

  #named(job: WriterJob<Statement> | undefined, result: JobResult): JobResult<SqlResult> {
    if (result.kind !== "statements") return result;
    if (job?.kind !== "statements") throw new Error("the writer answered a job of another kind");
    return { kind: "statements", results: this.#numbers.toResults(job.statements, result.results) };
  }
}

/** A job shares its transaction with others, but its rows with none: it has no key. */
interface JobEntry extends BatchEntry<JobResult<SqlResult>> {
  readonly job: WriterJob<Statement>;
}

function rethrow(cause: unknown): never {
  throw cause;
}

// SQLITE_CONSTRAINT_PRIMARYKEY and SQLITE_CONSTRAINT_UNIQUE.
const uniqueViolations = [1555, 2067];
// SQLITE_CONSTRAINT_CHECK. The message ends with the constraint's name.
const checkViolation = 275;

function errorOf({ resultCode, message }: WriterFailure): Error {
  if (uniqueViolations.includes(resultCode)) return new UniqueViolation(message);
  if (resultCode === checkViolation) return new CheckViolation(message.replace("CHECK constraint failed: ", ""));
  return new Unavailable(`the write failed: ${message}`);
}
