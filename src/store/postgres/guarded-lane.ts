import type { Ambient } from "../../ambient/ambient.ts";
import type { Clock } from "../../ambient/clock.ts";
import { Deadline } from "../../domain/deadlines.ts";
import { Unavailable } from "../../domain/unavailable.ts";
import type { LedgerWatch } from "../ledger-watch.ts";
import {
  beginText,
  bySubject,
  type GuardedSteps,
  guardedText,
  type KeptRow,
  type LaneItem,
  type LaneResult,
  type LaneStatement,
  locked,
  recoverText,
  type SkippedRow,
} from "./guarded-statement.ts";
import { PgConnection, type PreparedText, preparedText } from "./pg-connection.ts";
import {
  isConnectionUsable,
  isDataError,
  isLockTimeout,
  isRolledBack,
  sqlStateOf,
  toStoreError,
  UnsafeTransaction,
} from "./pg-error.ts";
import type { PgServers } from "./pg-servers.ts";
import { batchTimeoutMs, type RoundTrip } from "./round-trip.ts";

export interface GuardedLaneOptions extends Pick<Ambient, "clock" | "random" | "metrics"> {
  readonly servers: PgServers;
  /**
   * How long a batch is tried. After that its callers get the answer that its outcome is unknown. A caller may have waited
   * just as long for the batch before.
   */
  readonly timeoutMs: number;
  /** The measured round trip to the database. Over a distance a batch has more time. */
  readonly roundTrip?: RoundTrip;
  /** Gets every reading of the database's clock. */
  readonly watch?: LedgerWatch;
  /** How long a batch waits for a row locked by another transaction. Default: a third of its time. */
  readonly lockMs?: number;
  /** Replaces the database's clock in tests. */
  readonly ledgerClock?: Pick<Clock, "nowMs">;
  /** Replaces the random writer id in tests. */
  readonly writerId?: () => string;
}

const pauseMs = 20;
/**
 * The part of its time that a batch waits for a row locked by another transaction. The rest is enough to settle the
 * other rows, and to wait once more for the locked ones alone.
 */
const lockPart = 1 / 3;
/** The database deletes an unused writer after a day. A lane takes a new one long before that. */
const writerMaxIdleMs = 3_600_000;

/**
 * One connection that settles one batch at a time. A batch whose reply is lost is sent again with the same sequence
 * number, which the database applies at most once. A batch without any answer is given up together with its writer id,
 * so that no retry can apply it after its callers have left. One number stands for one content: after the database has
 * refused a batch, the next content gets the next number.
 */
export class GuardedLane<Item extends LaneItem, Row extends KeptRow, Settled> {
  readonly #options: GuardedLaneOptions;
  readonly #connection: PgConnection;
  readonly #lockMs: number;
  readonly #texts: Record<"begin" | "recover", PreparedText>;
  readonly #textsOf = { wait: new Map<GuardedSteps, PreparedText>(), skip: new Map<GuardedSteps, PreparedText>() };
  #underWay: Promise<unknown> = Promise.resolve();
  #writer: Writer | undefined;

  constructor(options: GuardedLaneOptions) {
    this.#options = options;
    this.#connection = new PgConnection(options.servers, { keepOpen: true, roundTrip: options.roundTrip });
    const lockMs = options.lockMs ?? options.timeoutMs * lockPart;
    this.#lockMs = lockMs;
    this.#texts = {
      begin: preparedText(beginText({ lockMs })),
      recover: preparedText(recoverText({ lockMs })),
    };
  }

  /** One batch after the other: the next sequence number is used only when the previous one is settled. */
  apply(items: readonly Item[], statement: LaneStatement<Item, Row, Settled>): Promise<readonly LaneResult<Settled>[]> {
    const results = this.#underWay.then(() => this.#settleAll({ items, statement, deadline: this.#newDeadline() }));
    this.#underWay = results.catch(() => {});
    return results;
  }

  /**
   * First waits for locked rows. If one stays locked, settles the others without it, then waits again for the locked ones
   * alone. What is still locked then fails: it has not been charged.
   */
  async #settleAll(work: Work<Item, Row, Settled>, isLastTry = false): Promise<readonly LaneResult<Settled>[]> {
    const { items, deadline } = work;
    const waited = await this.#settle(work, "wait");
    if (waited !== "locked") return waited;
    this.#options.metrics.ledger("locked");
    const around = isLastTry && items.length === 1 ? items.map(() => locked) : await this.#settle(work, "skip");
    // Locked rows were skipped, so only the writer's own row can still be locked here.
    if (around === "locked") this.#giveUp("the ledger's own row is locked");
    const again = items.filter((_, at) => around[at] === locked);
    const isTimeLeft = deadline.leftMs > this.#lockMs;
    const retried =
      isLastTry || again.length === 0 || !isTimeLeft
        ? again.map(() => locked)
        : await this.#settleAll({ ...work, items: again }, true).catch((error: Error) =>
            again.map(() => failedBy(error)),
          );
    const next = retried.values();
    return around.map((result) => (result === locked ? (next.next().value as LaneResult<Settled>) : result));
  }

  /** The results, or "locked": a row stayed locked and nothing has happened. */
  async #settle(work: Work<Item, Row, Settled>, locking: Locking): Promise<readonly LaneResult<Settled>[] | "locked"> {
    const batch: Batch<Item, Row, Settled> = { ...work, locking, nonce: this.#newId() };
    for (;;) {
      try {
        return this.#resultsOf(batch, await this.#attempt(batch));
      } catch (error) {
        if (error instanceof Unavailable) throw error;
        // An earlier attempt without an answer may still be applied: then nothing else may be sent in its place.
        if (isDataError(error) && !batch.isUnanswered) return this.#split(work);
        if (isLockTimeout(error) && !batch.isUnanswered) return "locked";
        if (sqlStateOf(error) !== undefined) batch.refusal = error;
        const cause = batch.refusal ?? error;
        if (isDataError(error)) this.#giveUp("the ledger refused a repeated batch", cause);
        if (!isConnectionUsable(error)) this.#connection.discard();
        if (batch.deadline.leftMs <= pauseMs) this.#giveUp("the ledger did not answer", cause);
        this.#options.metrics.ledger("retried");
        await new Promise((resolve) => setTimeout(resolve, pauseMs));
      }
    }
  }

  /** Connects before the first use, with a longer timeout than a use has. Throws `Unavailable`. */
  async connect(): Promise<void> {
    await this.#connection.ready().catch((error: unknown) => {
      throw toStoreError(error);
    });
  }

  close(): void {
    this.#connection.close();
  }

  async #attempt(batch: Batch<Item, Row, Settled>): Promise<readonly Row[]> {
    const { items, statement, nonce, locking } = batch;
    // The same number in every attempt: with another one the batch could be applied a second time. A number is never used for
    // two contents, even if the first was refused.
    batch.number ??= await this.#nextNumber(batch);
    const { writer, seq } = batch.number;
    const nowMs = this.#options.ledgerClock?.nowMs() ?? null;
    const values = [writer.id, seq, nonce, nowMs, ...statement.valuesOf(items)];
    const sentAtMs = this.#options.clock.monotonicMs();
    const reply = await this.#run(this.#textOf(statement.steps, locking), values, batch);
    const receivedAtMs = this.#options.clock.monotonicMs();
    this.#options.watch?.onClockReading({ ledgerMs: reply.now_ms as number, sentAtMs, receivedAtMs });
    if (reply.fresh === 1) return this.#applied(writer, reply.result);

    // Already applied: by an attempt whose reply was lost, or by another process with the same writer id.
    const recovered = await this.#run(this.#texts.recover, [writer.id, seq, nonce], batch);
    if (recovered.result === null) this.#giveUp("the ledger has another writer of this name");
    this.#options.metrics.ledger("recovered");
    return this.#applied(writer, recovered.result);
  }

  #textOf(steps: GuardedSteps, locking: Locking): PreparedText {
    const rule = { lockMs: this.#lockMs, skipLocked: locking === "skip" };
    const texts = this.#textsOf[locking];
    const text = texts.get(steps) ?? preparedText(guardedText(steps, rule));
    texts.set(steps, text);
    return text;
  }

  #applied(writer: Writer, result: unknown): readonly Row[] {
    writer.usedMs = this.#options.clock.monotonicMs();
    return result as readonly Row[];
  }

  async #nextNumber(batch: Sending): Promise<{ writer: Writer; seq: number }> {
    const nowMs = this.#options.clock.monotonicMs();
    if (this.#writer === undefined || nowMs - this.#writer.usedMs > writerMaxIdleMs) {
      const id = this.#options.writerId?.() ?? this.#newId();
      await this.#run(this.#texts.begin, [id], batch);
      this.#writer = { id, seq: 0, usedMs: nowMs };
    }
    return { writer: this.#writer, seq: ++this.#writer.seq };
  }

  async #run(prepared: PreparedText, values: readonly unknown[], batch: Sending): Promise<GuardedReply> {
    const { deadline } = batch;
    const wasConnected = this.#connection.isReady;
    await this.#connection.ready(deadline);
    // A statement without an answer in time costs the connection. So a batch that spent most of its time on connecting
    // sends nothing, and the next batch finds an open connection.
    if (!wasConnected && deadline.leftMs < this.#timeoutMs / 3)
      this.#giveUp("there was no connection in time", batch.refusal);
    const { rows, doubtful } = await this.#connection.run({ ...prepared, values }, deadline).catch((error: unknown) => {
      // A batch without a number cannot have been sent.
      batch.isUnanswered ||= batch.number !== undefined && !isRolledBack(error);
      throw error;
    });
    if (doubtful) this.#giveUp("the standby has not confirmed the commit");
    const reply = rows[0] as unknown as GuardedReply;
    if (!reply.is_safe) this.#throwGivenUp(new UnsafeTransaction());
    return reply;
  }

  /** The server refuses something in the batch. Each half is tried alone, down to the bad item. */
  async #split(work: Work<Item, Row, Settled>): Promise<readonly LaneResult<Settled>[]> {
    const { items } = work;
    this.#options.metrics.ledger("split");
    const [first] = items as readonly [Item, ...Item[]];
    // All of them are about the same rows: no half can do better.
    if (items.every(({ subject, shared }) => subject === first.subject && shared === first.shared))
      return items.map(() => ({ outcome: "failed", reason: "the database refuses the subject's row" }));
    const middle = items.length >> 1;
    const results: LaneResult<Settled>[] = [];
    for (const half of [items.slice(0, middle), items.slice(middle)]) {
      // A half without an answer must not hide the result of the other half.
      const lost = (error: Error) => half.map(() => failedBy(error));
      results.push(...(await this.#settleAll({ ...work, items: half, deadline: this.#newDeadline() }).catch(lost)));
    }
    return results;
  }

  #resultsOf(
    { items, statement }: Batch<Item, Row, Settled>,
    rows: readonly (Row | SkippedRow)[],
  ): readonly LaneResult<Settled>[] {
    const results = statement.resultsOf(items, bySubject(rows));
    if (results !== "mismatch") return results;
    this.#options.metrics.ledger("mismatch");
    return this.#giveUp("the ledger has settled a batch by another rule");
  }

  /** A lane without a writer has to begin one first, which takes another round trip. */
  get #timeoutMs(): number {
    const { timeoutMs, roundTrip } = this.#options;
    return Math.max(timeoutMs, batchTimeoutMs(roundTrip?.ms ?? 0, this.#writer === undefined ? 2 : 1));
  }

  #newDeadline(): Deadline {
    return new Deadline(this.#options.clock, this.#timeoutMs);
  }

  #giveUp(reason: string, cause?: unknown): never {
    this.#throwGivenUp(new Unavailable(reason, { cause }));
  }

  #throwGivenUp(error: Unavailable): never {
    this.#options.metrics.ledger("given-up");
    this.#writer = undefined;
    throw error;
  }

  #newId(): string {
    return Buffer.from(this.#options.random.bytes(16)).toString("base64url");
  }
}

/** Whether rows locked by other transactions are waited for or skipped. */
type Locking = "wait" | "skip";

/** Items to settle by one statement. */
interface Work<Item, Row extends KeptRow, Settled> {
  readonly items: readonly Item[];
  readonly statement: LaneStatement<Item, Row, Settled>;
  readonly deadline: Deadline;
}

interface Batch<Item, Row extends KeptRow, Settled> extends Sending, Work<Item, Row, Settled> {
  readonly locking: Locking;
  readonly nonce: string;
}

/** Where the attempts to send a batch stand. */
interface Sending {
  readonly deadline: Deadline;
  /** Set by the first attempt. */
  number?: { readonly writer: Writer; readonly seq: number };
  /** An attempt may have been applied, or may still be: it was sent, and the server has not said that it failed. */
  isUnanswered?: boolean;
  /** The latest error from the server itself: more useful than a timeout. */
  refusal?: unknown;
}

interface Writer {
  readonly id: string;
  /** The latest number that was taken. */
  seq: number;
  usedMs: number;
}

interface GuardedReply {
  readonly is_safe: boolean;
  readonly fresh?: number;
  readonly result?: unknown;
  readonly now_ms?: number;
}

function failedBy({ message }: Error): { outcome: "failed"; reason: string } {
  return { outcome: "failed", reason: message };
}
