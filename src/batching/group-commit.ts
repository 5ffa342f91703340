import type { Ambient } from "../ambient/ambient.ts";
import { Deadline } from "../domain/deadlines.ts";
import { Unavailable } from "../domain/unavailable.ts";

export interface GroupCommitOptions<Item, Result> extends Pick<Ambient, "clock" | "metrics"> {
  /** Name in the metrics. */
  readonly name: string;
  /** Most items of one batch. */
  readonly batchMax: number;
  /** Bounds a batch by what its items weigh together too. A heavier item is committed alone. Default: no such bound. */
  readonly weight?: { readonly of: (item: Item) => number; readonly max: number } | undefined;
  /** Most items waiting behind the batch under way; one more is refused. */
  readonly queueMax: number;
  /** Most batches under way at the same time. Default: 1. */
  readonly batchesMax?: number | undefined;
  /**
   * How long an item may be queued before it is rejected. With it, a batch that fails leaves the items behind it alone.
   * Default: until the batch before it is done; if that one fails, so do the items behind it.
   */
  readonly queuedMs?: (() => number) | undefined;
  /** Called once for each item when it is no longer queued: before its batch is committed, or when it is rejected instead. */
  readonly onDequeued?: ((item: Item) => void) | undefined;
  /**
   * Commits the items as one. Answers one result per item, in order; throws if the outcome of all is unknown. A result that
   * is a promise settles its item. `queueLeftMs`: how much longer the first of them could have been queued.
   */
  readonly commit: (items: readonly Item[], queueLeftMs: number) => Promise<readonly Result[]>;
}

/**
 * Commits all waiting items as soon as the batch before them is done, without a timer. A single item is committed
 * immediately; under load, all waiting items share one commit.
 */
export class GroupCommit<Item, Result> {
  readonly #options: GroupCommitOptions<Item, Result>;
  readonly #batchesMax: number;
  #queue: Waiting<Item, Result>[] = [];
  /** Each commits one batch after the other, until nothing is queued. */
  #workers = 0;
  #isWorkerStarting = false;
  #overdueTimer: NodeJS.Timeout | undefined;
  #onIdle: (() => void)[] = [];

  constructor(options: GroupCommitOptions<Item, Result>) {
    this.#options = options;
    this.#batchesMax = options.batchesMax ?? 1;
  }

  get queued(): number {
    return this.#queue.length;
  }

  /** Rejects with `Unavailable` when the queue is full or the item waited too long, otherwise with the error of the commit. */
  submit(item: Item): Promise<Awaited<Result>> {
    const { name, queueMax, queuedMs, clock, onDequeued } = this.#options;
    if (this.#queue.length >= queueMax) {
      onDequeued?.(item);
      return Promise.reject(new Unavailable(`the ${name} queue is full`, { nothingDone: true }));
    }
    return new Promise((resolve, reject) => {
      const deadline = queuedMs && new Deadline(clock, queuedMs());
      this.#queue.push({ item, resolve: resolve as (result: Result) => void, reject, deadline });
      this.#startWorker();
    });
  }

  /** Resolves when nothing is queued or under way. */
  async drained(): Promise<void> {
    while (this.#workers > 0) await new Promise<void>((resolve) => this.#onIdle.push(resolve));
  }

  #startWorker(): void {
    if (this.#isWorkerStarting) return;
    if (this.#workers >= this.#batchesMax) {
      this.#watchQueue();
      return;
    }
    this.#workers++;
    this.#isWorkerStarting = true;
    const start = () => {
      this.#isWorkerStarting = false;
      void this.#work();
    };
    // Everything submitted in this turn of the event loop goes together. If only one batch can be under way, a microtask
    // later is enough: what comes then gathers behind that batch.
    if (this.#batchesMax === 1) queueMicrotask(start);
    else setImmediate(start);
  }

  async #work(): Promise<void> {
    while (this.#queue.length > 0) {
      const batch = this.#dequeue(this.#nextBatchSize());
      if (this.#queue.length > 0) this.#startWorker();
      await this.#commit(batch);
    }
    if (--this.#workers === 0) for (const resolve of this.#onIdle.splice(0)) resolve();
  }

  #nextBatchSize(): number {
    const { batchMax, weight } = this.#options;
    if (weight === undefined) return batchMax;
    const sizeMax = Math.min(batchMax, this.#queue.length);
    let total = 0;
    for (let size = 0; size < sizeMax; size++) {
      total += weight.of((this.#queue[size] as Waiting<Item, Result>).item);
      if (total > weight.max && size > 0) return size;
    }
    return sizeMax;
  }

  #dequeue(countMax: number): Waiting<Item, Result>[] {
    const { onDequeued } = this.#options;
    const dequeued = this.#queue.splice(0, countMax);
    if (onDequeued !== undefined) for (const { item } of dequeued) onDequeued(item);
    return dequeued;
  }

  async #commit(batch: readonly Waiting<Item, Result>[]): Promise<void> {
    const { name, commit, clock, metrics } = this.#options;
    const startedMs = clock.monotonicMs();
    try {
      const queueLeftMs = batch[0]?.deadline?.leftMs ?? Number.POSITIVE_INFINITY;
      const results = await commit(
        batch.map((waiting) => waiting.item),
        queueLeftMs,
      );
      if (results.length !== batch.length)
        throw new Error(`${name}: ${results.length} results for ${batch.length} items`);
      batch.forEach((waiting, i) => {
        waiting.resolve(results[i] as Result);
      });
    } catch (error) {
      for (const waiting of batch) waiting.reject(error);
      // Items behind a failed batch fail too: they would wait as long again, probably for the same error.
      if (this.#options.queuedMs === undefined) {
        for (const waiting of this.#dequeue(this.#queue.length)) waiting.reject(error);
      }
    }
    metrics.batchCommitted(name, batch.length, (clock.monotonicMs() - startedMs) / 1000);
  }

  /** All batches that may be under way are: the items that wait too long for one of them are rejected. */
  #watchQueue(): void {
    const first = this.#queue[0]?.deadline;
    if (first === undefined || this.#overdueTimer !== undefined) return;
    this.#overdueTimer = setTimeout(
      () => {
        this.#overdueTimer = undefined;
        const error = new Unavailable(`the ${this.#options.name} queue is too slow`, { nothingDone: true });
        while (this.#queue[0]?.deadline?.hasPassed) this.#dequeue(1)[0]?.reject(error);
        this.#watchQueue();
      },
      Math.max(1, Math.ceil(first.leftMs)),
    ).unref();
  }
}

interface Waiting<Item, Result> {
  readonly item: Item;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
  /** Of its time in the queue, if that is bounded. */
  readonly deadline: Deadline | undefined;
}
