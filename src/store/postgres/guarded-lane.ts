import type { Clock } from "../../ambient/clock.ts";
import type { Metrics } from "../../ambient/metrics.ts";
import type { Random } from "../../ambient/random.ts";
import { Unavailable } from "../../domain/unavailable.ts";
import type { LedgerWatch } from "../ledger-watch.ts";
import { beginText, recoverText } from "./guarded-statement.ts";
import { PgConnection, type PgStatement } from "./pg-connection.ts";
import { isConnectionUsable, isDataError, sqlStateOf, toStoreError } from "./pg-error.ts";

export interface GuardedLaneOptions {
  readonly url: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly metrics: Metrics;
  /**
   * How long a batch is tried before its callers are told that it is not known what became of it. A caller may have
   * waited as long for the batch before.
   */
  readonly timeoutMs: number;
  /** Is told what the database's clock shows. */
  readonly watch?: LedgerWatch;
  /** Takes the place of the database's clock in tests. */
  readonly ledgerClock?: Pick<Clock, "nowMs">;
  /** Takes the place of a random writer id in tests. */
  readonly writerId?: () => string;
}

const pauseMs = 20;
/** An unused writer is forgotten after a day; long before that a lane takes a new one. */
const writerMaxIdleMs = 3_600_000;

/** What a lane does: one kind of statement. */
export interface LaneWork<Item, Row extends KeptRow, Settled> {
  /** Prepared under this name. */
  readonly name: string;
  /** Made by `guardedText`. */
  readonly text: string;
  /** What follows the guard's own parameters. */
  valuesOf(items: readonly Item[]): readonly unknown[];
  /** What the database keeps of a settled item, and answers. */
  settledOf(row: Row): Settled;
}

export type KeptRow = readonly [keyId: string, ...rest: unknown[]];

export type LaneResult<Settled> =
  | Settled
  | { readonly outcome: "missing" }
  | { readonly outcome: "failed"; readonly reason: string };

/**
 * One connection that settles one batch at a time. A batch whose reply is lost is sent again under the same sequence
 * number, which the database applies once at most; a batch that stays without an answer is given up together with its
 * writer id, so that it can never be applied by a repeat that nobody waits for.
 */
export class GuardedLane<Item extends { readonly keyId: string }, Row extends KeptRow, Settled> {
  readonly #options: GuardedLaneOptions;
  readonly #work: LaneWork<Item, Row, Settled>;
  readonly #connection: PgConnection;
  #underWay: Promise<unknown> = Promise.resolve();
  #writer: Writer | undefined;

  constructor(options: GuardedLaneOptions, work: LaneWork<Item, Row, Settled>) {
    this.#options = options;
    this.#work = work;
    this.#connection = new PgConnection(options.url);
  }

  /** One batch after the other: a sequence number is taken only when the one before it is settled. */
  apply(items: readonly Item[]): Promise<readonly LaneResult<Settled>[]> {
    const settled = this.#underWay.then(() => this.#settle(items));
    this.#underWay = settled.catch(() => {});
    return settled;
  }

  async #settle(items: readonly Item[]): Promise<readonly LaneResult<Settled>[]> {
    const untilMs = this.#options.clock.monotonicMs() + this.#options.timeoutMs;
    const batch: Batch<Item> = { items, nonce: this.#newId(), untilMs, writer: undefined };
    let isUnanswered = false;
    for (;;) {
      try {
        return this.#resultsOf(items, await this.#attempt(batch));
      } catch (error) {
        if (error instanceof Unavailable) throw error;
        // An earlier attempt that was not answered may be on its way yet: then parts of it must not be sent beside it.
        if (isDataError(error) && !isUnanswered) return this.#split(items);
        if (isDataError(error)) this.#giveUp("the ledger refused a repeated batch", error);
        isUnanswered ||= sqlStateOf(error) === undefined;
        if (!isConnectionUsable(error)) this.#connection.discard();
        if (this.#options.clock.monotonicMs() + pauseMs >= batch.untilMs)
          this.#giveUp("the ledger did not answer", error);
        this.#options.metrics.ledger("retried");
        await new Promise((resolve) => setTimeout(resolve, pauseMs));
      }
    }
  }

  /** Connects ahead of the first use, with more patience than a use has. Throws `Unavailable`. */
  async connect(): Promise<void> {
    await this.#connection.ready().catch((error: unknown) => {
      throw toStoreError(error);
    });
  }

  close(): void {
    this.#connection.close();
  }

  async #attempt(batch: Batch<Item>): Promise<readonly Row[]> {
    const { items, nonce } = batch;
    // The same in every attempt: under another writer's numbers the batch could be applied a second time.
    batch.writer ??= await this.#currentWriter(batch);
    const { writer } = batch;
    const seq = writer.seq + 1;
    const { name, text } = this.#work;
    const nowMs = this.#options.ledgerClock?.nowMs() ?? null;
    const values = [writer.id, seq, nonce, nowMs, ...this.#work.valuesOf(items)];
    const sentAtMs = this.#options.clock.monotonicMs();
    const settled = await this.#run({ name, text, values }, batch);
    const receivedAtMs = this.#options.clock.monotonicMs();
    this.#options.watch?.sawClock({ shownMs: settled.now_ms as number, sentAtMs, receivedAtMs });
    if (settled.fresh === 1) return this.#applied(writer, seq, settled.result);

    // Applied already, by a repeat whose reply was lost; or by somebody who has the same writer id.
    const recovered = await this.#run({ name: "recover", text: recoverText, values: [writer.id, seq, nonce] }, batch);
    if (recovered.result === undefined) this.#giveUp("the ledger has another writer of this name");
    this.#options.metrics.ledger("recovered");
    return this.#applied(writer, seq, recovered.result);
  }

  #applied(writer: Writer, seq: number, result: unknown): readonly Row[] {
    writer.seq = seq;
    writer.usedMs = this.#options.clock.monotonicMs();
    return (result ?? []) as readonly Row[];
  }

  async #currentWriter(batch: Batch<Item>): Promise<Writer> {
    const nowMs = this.#options.clock.monotonicMs();
    if (this.#writer === undefined || nowMs - this.#writer.usedMs > writerMaxIdleMs) {
      const id = this.#options.writerId?.() ?? this.#newId();
      await this.#run({ name: "begin", text: beginText, values: [id] }, batch);
      this.#writer = { id, seq: 0, usedMs: nowMs };
    }
    return this.#writer;
  }

  async #run(statement: PgStatement, { untilMs }: Batch<Item>): Promise<LaneReply> {
    const leftMs = () => Math.max(1, Math.ceil(untilMs - this.#options.clock.monotonicMs()));
    await this.#connection.ready(leftMs());
    // A statement that gets no answer costs the connection. So on a slow link a batch that spent its time connecting
    // leaves the connection to the next, instead of the same to do again.
    if (leftMs() < this.#options.timeoutMs / 3) this.#giveUp("there was no connection in time");
    const { rows, doubtful } = await this.#connection.run(statement, leftMs());
    if (doubtful) this.#giveUp("the standby has not confirmed the commit");
    return rows[0] ?? {};
  }

  /** Something in the batch is refused by the server. Each half is tried alone, down to the item that is at fault. */
  async #split(items: readonly Item[]): Promise<readonly LaneResult<Settled>[]> {
    this.#options.metrics.ledger("split");
    this.#writer = undefined;
    if (items.length === 1) return [{ outcome: "failed", reason: "the database refuses the key's row" }];
    const middle = items.length >> 1;
    const results: LaneResult<Settled>[] = [];
    for (const half of [items.slice(0, middle), items.slice(middle)]) {
      // A half that stays without an answer must not hide what the other came to.
      const lost = (error: Error) => half.map(() => ({ outcome: "failed" as const, reason: error.message }));
      results.push(...(await this.#settle(half).catch(lost)));
    }
    return results;
  }

  #resultsOf(items: readonly Item[], rows: readonly Row[]): readonly LaneResult<Settled>[] {
    const byKey = new Map(rows.map((row) => [row[0], row]));
    return items.map(({ keyId }) => {
      const row = byKey.get(keyId);
      return row ? this.#work.settledOf(row) : { outcome: "missing" };
    });
  }

  #giveUp(reason: string, cause?: unknown): never {
    this.#options.metrics.ledger("given-up");
    this.#writer = undefined;
    throw new Unavailable(reason, { cause });
  }

  #newId(): string {
    return Buffer.from(this.#options.random.bytes(16)).toString("base64url");
  }
}

interface LaneReply {
  readonly fresh?: number;
  readonly result?: unknown;
  readonly now_ms?: number;
}

interface Batch<Item> {
  readonly items: readonly Item[];
  readonly nonce: string;
  readonly untilMs: number;
  /** Chosen by the first attempt. */
  writer: Writer | undefined;
}

interface Writer {
  readonly id: string;
  /** The latest number that is settled. */
  seq: number;
  usedMs: number;
}
