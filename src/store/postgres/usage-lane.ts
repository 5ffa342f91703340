import type { Clock } from "../../ambient/clock.ts";
import type { Metrics } from "../../ambient/metrics.ts";
import type { Random } from "../../ambient/random.ts";
import { Unavailable } from "../../domain/unavailable.ts";
import type { Charge, ChargeResult, UsageEngine } from "../usage-ledger.ts";
import { PgConnection, type PgStatement } from "./pg-connection.ts";
import { isConnectionUsable, isDataError, toStoreError } from "./pg-error.ts";
import { beginText, recoverText, settleText } from "./settle-statement.ts";

export interface UsageLaneOptions {
  readonly url: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly metrics: Metrics;
  /**
   * How long a batch is tried before its callers are told that it is not known what became of it. A caller may have
   * waited as long for the batch before.
   */
  readonly timeoutMs: number;
  /** Takes the place of the database's clock in tests. */
  readonly ledgerClock?: Pick<Clock, "nowMs">;
  /** Takes the place of a random writer id in tests. */
  readonly writerId?: () => string;
}

const pauseMs = 20;
/** An unused writer is forgotten after a day; long before that a lane takes a new one. */
const writerMaxIdleMs = 3_600_000;

/**
 * One connection that settles one batch at a time. A batch whose reply is lost is sent again under the same sequence
 * number, which the database applies once at most; a batch that stays without an answer is given up together with its
 * writer id, so that it can never be applied by a repeat that nobody waits for.
 */
export class UsageLane implements UsageEngine {
  readonly #options: UsageLaneOptions;
  readonly #connection: PgConnection;
  #underWay: Promise<unknown> = Promise.resolve();
  #writer: Writer | undefined;

  constructor(options: UsageLaneOptions) {
    this.#options = options;
    this.#connection = new PgConnection(options.url);
  }

  /** One batch after the other: a sequence number is taken only when the one before it is settled. */
  settle(charges: readonly Charge[]): Promise<readonly ChargeResult[]> {
    const settled = this.#underWay.then(() => this.#settle(charges));
    this.#underWay = settled.catch(() => {});
    return settled;
  }

  async #settle(charges: readonly Charge[]): Promise<readonly ChargeResult[]> {
    const untilMs = this.#options.clock.monotonicMs() + this.#options.timeoutMs;
    const batch: Batch = { charges, nonce: this.#newId(), untilMs, writer: undefined };
    for (;;) {
      try {
        return resultsOf(charges, await this.#attempt(batch));
      } catch (error) {
        if (error instanceof Unavailable) throw error;
        if (isDataError(error)) return this.#split(charges);
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

  async #attempt(batch: Batch): Promise<readonly SettledRow[]> {
    const { charges, nonce } = batch;
    // The same in every attempt: under another writer's numbers the batch could be applied a second time.
    batch.writer ??= await this.#currentWriter(batch);
    const { writer } = batch;
    const seq = writer.seq + 1;
    const ids = charges.map((charge) => charge.keyId);
    const wanted = charges.map((charge) => charge.wanted);
    const nowMs = this.#options.ledgerClock?.nowMs() ?? null;
    const settle = { name: "settle", text: settleText, values: [writer.id, seq, nonce, ids, wanted, nowMs] };
    const settled = await this.#run(settle, batch);
    if (settled.fresh === 1) return this.#applied(writer, seq, settled.result);

    // Applied already, by a repeat whose reply was lost; or by somebody who has the same writer id.
    const recovered = await this.#run({ name: "recover", text: recoverText, values: [writer.id, seq, nonce] }, batch);
    if (recovered.result === undefined) this.#giveUp("the ledger has another writer of this name");
    this.#options.metrics.ledger("recovered");
    return this.#applied(writer, seq, recovered.result);
  }

  #applied(writer: Writer, seq: number, result: unknown): readonly SettledRow[] {
    writer.seq = seq;
    writer.usedMs = this.#options.clock.monotonicMs();
    return (result ?? []) as readonly SettledRow[];
  }

  async #currentWriter(batch: Batch): Promise<Writer> {
    const nowMs = this.#options.clock.monotonicMs();
    if (this.#writer === undefined || nowMs - this.#writer.usedMs > writerMaxIdleMs) {
      const id = this.#options.writerId?.() ?? this.#newId();
      await this.#run({ name: "begin", text: beginText, values: [id] }, batch);
      this.#writer = { id, seq: 0, usedMs: nowMs };
    }
    return this.#writer;
  }

  async #run(statement: PgStatement, { untilMs }: Batch): Promise<{ fresh?: number; result?: unknown }> {
    const leftMs = () => Math.max(1, Math.ceil(untilMs - this.#options.clock.monotonicMs()));
    await this.#connection.ready(leftMs());
    // A statement that gets no answer costs the connection. So on a slow link a batch that spent its time connecting
    // leaves the connection to the next, instead of the same to do again.
    if (leftMs() < this.#options.timeoutMs / 3) this.#giveUp("there was no connection in time");
    const { rows, doubtful } = await this.#connection.run(statement, leftMs());
    if (doubtful) this.#giveUp("the standby has not confirmed the commit");
    return rows[0] ?? {};
  }

  /** Something in the batch is refused by the server. Each half is tried alone, down to the charge that is at fault. */
  async #split(charges: readonly Charge[]): Promise<readonly ChargeResult[]> {
    this.#options.metrics.ledger("split");
    // New numbers: an earlier attempt of the whole may still be on its way.
    this.#writer = undefined;
    if (charges.length === 1) return [{ outcome: "failed", reason: "the database refuses the counter's row" }];
    const middle = charges.length >> 1;
    const results: ChargeResult[] = [];
    for (const half of [charges.slice(0, middle), charges.slice(middle)]) {
      // A half that stays without an answer must not hide what the other came to.
      const lost = (error: Error) => half.map((): ChargeResult => ({ outcome: "failed", reason: error.message }));
      results.push(...(await this.#settle(half).catch(lost)));
    }
    return results;
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

interface Batch {
  readonly charges: readonly Charge[];
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

type SettledRow = readonly [keyId: string, granted: number, remaining: number];

function resultsOf(charges: readonly Charge[], rows: readonly SettledRow[]): ChargeResult[] {
  const byKey = new Map(rows.map((row) => [row[0], row]));
  return charges.map(({ keyId }) => {
    const row = byKey.get(keyId);
    return row ? { outcome: "settled", granted: row[1], remaining: row[2] } : { outcome: "missing" };
  });
}
