import { Worker } from "node:worker_threads";
import type { Ambient } from "../../ambient/ambient.ts";
import { anchored, type Clock } from "../../ambient/clock.ts";
import { GroupCommit } from "../../batching/group-commit.ts";
import { Unavailable } from "../../domain/unavailable.ts";
import type { LedgerWatch } from "../ledger-watch.ts";
import type { PermitEngine, PermitResult, SubjectAsk } from "../permit-ledger.ts";
import { CheckViolation, UniqueViolation } from "../sql/sql-engine.ts";
import type { Charge, ChargeResult, UsageEngine } from "../usage-ledger.ts";
import type { CheckResult } from "./check-data.ts";
import { DataFolderError } from "./data-folder.ts";
import { isDamage, isFailedWrite } from "./result-codes.ts";
import { StatementNumbers } from "./statement-numbers.ts";
import type {
  JobResult,
  Statement,
  StatementResult,
  WriterFailure,
  WriterJob,
  WriterReply,
  WriterRequest,
  WriterSetup,
} from "./writer-protocol.ts";

const jobsPerCommitMax = 500;
const jobsQueuedMax = 10_000;

export interface SqliteWriterOptions extends Pick<Ambient, "clock" | "metrics"> {
  readonly file: string;
  /** Gets every reading of the wall clock, which refills follow. */
  readonly watch?: LedgerWatch;
  /** Replaces, in tests, the windows' clock, which cannot be set. */
  readonly windowClock?: Pick<Clock, "nowMs">;
  /** The writer thread died. The outcome of its current work is unknown; only a new process can continue. */
  readonly onDeath: (cause: unknown) => void;
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
  readonly #worker: Worker;
  readonly #clock: Clock;
  readonly #windowClock: Pick<Clock, "nowMs">;
  readonly #watch: LedgerWatch | undefined;
  readonly #onDamage: (cause: unknown) => void;
  readonly #onFailedWrite: (cause: unknown) => void;
  readonly #problem: () => Unavailable | undefined;
  readonly #jobs: GroupCommit<WriterJob<Statement>, JobResult<StatementResult>>;
  readonly #numbers = new StatementNumbers();
  /** Gets the next reply: at most one request is under way. */
  #awaited: { resolve: (reply: WriterReply) => void; reject: (error: Error) => void } | undefined;
  /** From the moment the file is open until it is closed or the thread has died. */
  #serving = false;
  #checked: CheckResult | undefined;
  #isFull = false;

  /** Resolves when the file is open; throws `DataFolderError` when it cannot be opened. */
  static async open(options: SqliteWriterOptions): Promise<SqliteWriter> {
    const writer = new SqliteWriter(options);
    const reply = await writer.#reply().catch((error: Error) => {
      const reason = error.cause instanceof Error ? error.cause.message : error.message;
      throw new DataFolderError(`the data file ${options.file} cannot be opened: ${reason}`);
    });
    writer.#serving = true;
    if (typeof reply === "object" && "opened" in reply) writer.#checked = reply.opened;
    return writer;
  }

  private constructor({ file, clock, metrics, onDeath, ...options }: SqliteWriterOptions) {
    const { checkFirst = false, onDamage = () => {}, onFailedWrite = () => {}, problem = () => undefined } = options;
    this.#onDamage = onDamage;
    this.#onFailedWrite = onFailedWrite;
    this.#problem = problem;
    this.#clock = clock;
    this.#windowClock = options.windowClock ?? anchored(clock);
    this.#watch = options.watch;
    this.#jobs = new GroupCommit({
      name: "sqlite",
      batchMax: jobsPerCommitMax,
      queueMax: jobsQueuedMax,
      commit: (jobs) => this.#commit(jobs),
      clock,
      metrics,
    });
    const setup: WriterSetup = { file, checkFirst };
    this.#worker = new Worker(new URL("./writer-worker.ts", import.meta.url), { workerData: setup });
    let cause: unknown;
    this.#worker.on("message", (reply: WriterReply) => {
      options.onReply?.();
      this.#awaited?.resolve(reply);
    });
    this.#worker.on("error", (error) => {
      cause = error;
    });
    this.#worker.on("exit", (code) => {
      // A request still waiting would wait forever. For an answered one this changes nothing.
      this.#awaited?.reject(new Unavailable("the writer thread died", { cause }));
      if (!this.#serving) return;
      this.#serving = false;
      onDeath(cause ?? new Error(`the writer thread exited with ${code}`));
    });
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
  async run(statements: readonly Statement[]): Promise<readonly StatementResult[]> {
    const result = await this.#jobs.submit({ kind: "statements", statements });
    if (result.kind !== "statements") throw errorOf(result);
    return result.results;
  }

  async settle(charges: readonly Charge[]): Promise<readonly ChargeResult[]> {
    const result = await this.#jobs.submit({ kind: "settle", charges });
    if (result.kind !== "settle") throw errorOf(result);
    return result.results;
  }

  async exchange(asks: readonly SubjectAsk[]): Promise<readonly PermitResult[]> {
    const result = await this.#jobs.submit({ kind: "exchange", asks });
    if (result.kind !== "exchange") throw errorOf(result);
    return result.results;
  }

  async close(): Promise<void> {
    await this.#jobs.drained();
    if (!this.#serving) return;
    this.#serving = false;
    await this.#request("close");
  }

  async #commit(jobs: readonly WriterJob<Statement>[]): Promise<readonly JobResult<StatementResult>[]> {
    if (!this.#serving) throw new Unavailable("nothing was written: the store is closed", { nothingDone: true });
    // Also for those who asked before there was a problem: another checkpoint could overwrite the last sound copy.
    const problem = this.#problem();
    if (problem !== undefined) throw problem;
    const sentAtMs = this.#clock.monotonicMs();
    const time = { nowMs: this.#clock.nowMs(), windowNowMs: this.#windowClock.nowMs() };
    this.#watch?.onClockReading({ shownMs: time.nowMs, sentAtMs, receivedAtMs: this.#clock.monotonicMs() });
    const forgetsNumbers = this.#numbers.forgetIfMany();
    const reply = await this.#request({ jobs: jobs.map((job) => this.#numbered(job)), time, forgetsNumbers });
    if (typeof reply === "string" || "opened" in reply)
      throw new Error("the writer answered a batch with something else");
    const damage = "aborted" in reply ? reply.aborted : reply.damage;
    if (isFailedWrite(damage?.resultCode)) this.#onFailedWrite(new Error(damage?.message));
    else if (isDamage(damage?.resultCode)) this.#onDamage(new Error(damage?.message));
    this.#isFull = reply.isFull;
    if ("aborted" in reply)
      throw new Unavailable(`nothing was written: ${reply.aborted.message}`, { nothingDone: true });
    return reply.committed.map((result, i) => this.#named(jobs[i], result));
  }

  #numbered(job: WriterJob<Statement>): WriterJob {
    if (job.kind !== "statements") return job;
    return { kind: "statements", statements: job.statements.map((each) => this.#numbers.toNumbered(each)) };
  }

  #named(job: WriterJob<Statement> | undefined, result: JobResult): JobResult<StatementResult> {
    if (result.kind !== "statements") return result;
    if (job?.kind !== "statements") throw new Error("the writer answered a job of another kind");
    return { kind: "statements", results: this.#numbers.toResults(job.statements, result.results) };
  }

  #request(request: WriterRequest): Promise<WriterReply> {
    const reply = this.#reply();
    this.#worker.postMessage(request);
    return reply;
  }

  #reply(): Promise<WriterReply> {
    return new Promise((resolve, reject) => {
      this.#awaited = { resolve, reject };
    });
  }
}

// SQLITE_CONSTRAINT_PRIMARYKEY and SQLITE_CONSTRAINT_UNIQUE.
const uniqueViolations = [1555, 2067];
// SQLITE_CONSTRAINT_CHECK. The message ends with the constraint's name.
const checkViolation = 275;

function errorOf(result: JobResult<StatementResult>): Error {
  const failure: WriterFailure =
    result.kind === "failed" ? result.failure : { resultCode: 0, message: "wrong kind of result" };
  if (uniqueViolations.includes(failure.resultCode)) return new UniqueViolation(failure.message);
  if (failure.resultCode === checkViolation)
    return new CheckViolation(failure.message.replace("CHECK constraint failed: ", ""));
  return new Unavailable(`the write failed: ${failure.message}`);
}
