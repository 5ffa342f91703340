import type { Ambient } from "../ambient/ambient.ts";
import type { Deadline } from "../domain/deadlines.ts";
import type { MaybePromise } from "../domain/maybe-promise.ts";
import { Unavailable } from "../domain/unavailable.ts";

/** What waits under one key, for one caller or many: one row of a batch. */
export interface BatchEntry<Result> {
  /** It decides the lane, and `waiting` finds the entry by it. Absent: nobody looks for the entry. */
  readonly key?: string | undefined;
  /**
   * When the entry is rejected if it is still queued. Entries with deadlines do not fail with the batch before them. Absent,
   * then from all entries of a batcher: they wait until that batch is done, and fail if that one fails.
   */
  readonly deadline?: Deadline | undefined;
  /** Called once with its own result. If this throws, `reject` gets the error, and other entries are not concerned. */
  resolve(result: Result): void;
  /** Called once if there is no result: the entry was not committed, or it is unknown whether it was. */
  reject(error: unknown): void;
}

export interface KeyedBatcherOptions<Entry extends BatchEntry<Result>, Result> extends Pick<Ambient, "clock"> {
  /** Name in the metrics. */
  readonly name: string;
  readonly metrics: Pick<Ambient["metrics"], "batchCommitted">;
  /**
   * One for each lane. Commits the entries as one and answers one result per entry, in order; throws if the outcome of
   * all is unknown. A result that is a promise settles its own entry.
   */
  readonly commits: readonly ((batch: readonly Entry[]) => Promise<readonly MaybePromise<Result>[]>)[];
  /**
   * Called when an entry is taken from the queue into a batch: nothing is added to it from now on. False: nobody wants it
   * any more. Then it is not committed, and gets neither result nor error. Default: all are committed.
   */
  readonly take?: ((entry: Entry, nowMs: number) => boolean) | undefined;
  /** Most entries of one batch. */
  readonly batchMax?: number | undefined;
  /** Bounds a batch by what its entries weigh together too. A heavier entry is committed alone. Default: no such bound. */
  readonly weight?: { readonly of: (entry: Entry) => number; readonly max: number } | undefined;
  /** Most entries of a lane that wait behind the batches under way; one more is rejected. */
  readonly queueMax?: number | undefined;
  /** Most batches of a lane under way at the same time. Default: 1. */
  readonly batchesMax?: number | undefined;
}

/**
 * Commits all waiting entries as soon as the batch before them is done, without a timer. A single entry is committed
 * immediately; under load, all waiting entries share one commit. A key always goes to the same lane. As long as its entry
 * waits, further callers of the key are added to that entry, so a busy key costs one row per batch.
 */
export class KeyedBatcher<Entry extends BatchEntry<Result>, Result> {
  readonly #lanes: readonly Lane<Entry, Result>[];

  constructor(options: KeyedBatcherOptions<Entry, Result>) {
    this.#lanes = options.commits.map((commit) => new Lane(commit, options));
  }

  /** The entry of the key that is not yet in a batch, to which callers can be added. */
  waiting(key: string): Entry | undefined {
    return this.#laneOf(key).waiting(key);
  }

  /** Queues an entry for a key that has none waiting. Rejects it with `Unavailable` if the queue of its lane is full. */
  add(entry: Entry): void {
    this.#laneOf(entry.key).add(entry);
  }

  /** Resolves when nothing is queued or under way. */
  async drained(): Promise<void> {
    await Promise.all(this.#lanes.map((lane) => lane.drained()));
  }

  #laneOf(key: string | undefined): Lane<Entry, Result> {
    return this.#lanes[key === undefined ? 0 : laneOf(key, this.#lanes.length)] as Lane<Entry, Result>;
  }
}

/** One queue, and the batches that are taken from it. */
class Lane<Entry extends BatchEntry<Result>, Result> {
  readonly #commit: KeyedBatcherOptions<Entry, Result>["commits"][number];
  readonly #options: KeyedBatcherOptions<Entry, Result>;
  readonly #batchMax: number;
  readonly #queueMax: number;
  readonly #batchesMax: number;
  readonly #queue: Entry[] = [];
  /** Those of the queue that have a key. */
  #waiting = new Map<string, Entry>();
  /** Each commits one batch after the other, until nothing is queued. */
  #workers = 0;
  #isWorkerStarting = false;
  #overdueTimer: NodeJS.Timeout | undefined;
  readonly #onIdle: (() => void)[] = [];

  constructor(
    commit: KeyedBatcherOptions<Entry, Result>["commits"][number],
    options: KeyedBatcherOptions<Entry, Result>,
  ) {
    this.#commit = commit;
    this.#options = options;
    this.#batchMax = options.batchMax ?? 500;
    this.#queueMax = options.queueMax ?? 50_000;
    this.#batchesMax = options.batchesMax ?? 1;
  }

  waiting(key: string): Entry | undefined {
    return this.#waiting.get(key);
  }

  add(entry: Entry): void {
    if (this.#queue.length >= this.#queueMax) {
      entry.reject(new Unavailable(`the ${this.#options.name} queue is full`, { nothingDone: true }));
      return;
    }
    this.#queue.push(entry);
    if (entry.key !== undefined) this.#waiting.set(entry.key, entry);
    this.#startWorker();
  }

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
    // Everything added in this turn of the event loop goes together. If only one batch can be under way, a microtask later
    // is enough: what comes then gathers behind that batch.
    if (this.#batchesMax === 1) queueMicrotask(start);
    else setImmediate(start);
  }

  async #work(): Promise<void> {
    const { clock, take } = this.#options;
    while (this.#queue.length > 0) {
      const nowMs = clock.monotonicMs();
      const taken = this.#dequeue(this.#nextBatchSize());
      const batch = take === undefined ? taken : taken.filter((entry) => take(entry, nowMs));
      if (this.#queue.length > 0) this.#startWorker();
      if (batch.length > 0) await this.#commitBatch(batch, nowMs);
    }
    if (--this.#workers === 0) for (const resolve of this.#onIdle.splice(0)) resolve();
  }

  #nextBatchSize(): number {
    const { weight } = this.#options;
    if (weight === undefined) return this.#batchMax;
    const sizeMax = Math.min(this.#batchMax, this.#queue.length);
    let total = 0;
    for (let size = 0; size < sizeMax; size++) {
      total += weight.of(this.#queue[size] as Entry);
      if (total > weight.max && size > 0) return size;
    }
    return sizeMax;
  }

  #dequeue(countMax: number): Entry[] {
    const dequeued = this.#queue.splice(0, countMax);
    // A new map is cheaper than deletions. After every few of them V8 copies a map, and the old copies keep their entries alive.
    if (this.#queue.length === 0) this.#waiting = new Map();
    else for (const { key } of dequeued) if (key !== undefined) this.#waiting.delete(key);
    return dequeued;
  }

  async #commitBatch(batch: readonly Entry[], startedMs: number): Promise<void> {
    const { name, clock, metrics } = this.#options;
    try {
      const results = await this.#commit(batch);
      if (results.length !== batch.length)
        throw new Error(`${name}: ${results.length} results for ${batch.length} entries`);
      batch.forEach((entry, i) => {
        settle(entry, results[i] as MaybePromise<Result>);
      });
    } catch (error) {
      for (const entry of batch) entry.reject(error);
      this.#rejectBehind(error);
    }
    metrics.batchCommitted(name, batch.length, (clock.monotonicMs() - startedMs) / 1000);
  }

  /** Entries behind a failed batch fail too: they would wait as long again, probably for the same error. */
  #rejectBehind(error: unknown): void {
    if (this.#queue[0]?.deadline !== undefined) return;
    for (const entry of this.#dequeue(this.#queue.length)) entry.reject(error);
  }

  /** All batches that may be under way are: the entries that wait too long for one of them are rejected. */
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

function settle<Result>(entry: BatchEntry<Result>, result: MaybePromise<Result>): void {
  if (result instanceof Promise) {
    result.then(
      (own) => settle(entry, own),
      (error: unknown) => entry.reject(error),
    );
    return;
  }
  try {
    entry.resolve(result);
  } catch (error) {
    entry.reject(error);
  }
}

/** The number of the key's lane, below `lanes`. Always the same for a key. */
export function laneOf(key: string, lanes: number): number {
  if (lanes === 1) return 0;
  let hash = 0;
  for (let i = 0; i < key.length; i++) hash = (Math.imul(hash, 31) + key.charCodeAt(i)) | 0;
  return (hash >>> 0) % lanes;
}
