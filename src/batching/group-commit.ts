import type { Ambient } from "../ambient/ambient.ts";
import { Unavailable } from "../domain/unavailable.ts";

export interface GroupCommitOptions<Item, Result> extends Pick<Ambient, "clock" | "metrics"> {
  /** Name in the metrics. */
  readonly name: string;
  /** Most items of one batch. */
  readonly batchMax: number;
  /** Most items waiting behind the batch under way; one more is refused. */
  readonly queueMax: number;
  /** Commits the items as one. Answers one result per item, in order; throws if the outcome of all is unknown. */
  readonly commit: (items: readonly Item[]) => Promise<readonly Result[]>;
}

/**
 * Commits all waiting items as soon as the batch before them is done: one batch under way at a time, no timer. A single
 * item is committed immediately; under load, all waiting items share one commit.
 */
export class GroupCommit<Item, Result> {
  readonly #options: GroupCommitOptions<Item, Result>;
  #queue: Waiting<Item, Result>[] = [];
  #running: Promise<void> | undefined;

  constructor(options: GroupCommitOptions<Item, Result>) {
    this.#options = options;
  }

  get queued(): number {
    return this.#queue.length;
  }

  /** Rejects with `Unavailable` when the queue is full, otherwise with the error of the commit. */
  submit(item: Item): Promise<Result> {
    if (this.#queue.length >= this.#options.queueMax) {
      return Promise.reject(new Unavailable(`the ${this.#options.name} queue is full`));
    }
    return new Promise((resolve, reject) => {
      this.#queue.push({ item, resolve, reject });
      // A microtask later, so that everything submitted in this turn of the event loop goes together.
      this.#running ??= Promise.resolve().then(() => this.#run());
    });
  }

  /** Resolves when nothing is queued or under way. */
  async drained(): Promise<void> {
    while (this.#running !== undefined) await this.#running;
  }

  async #run(): Promise<void> {
    while (this.#queue.length > 0) {
      const batch = this.#queue.splice(0, this.#options.batchMax);
      await this.#commit(batch);
    }
    this.#running = undefined;
  }

  async #commit(batch: readonly Waiting<Item, Result>[]): Promise<void> {
    const { name, commit, clock, metrics } = this.#options;
    const startedMs = clock.monotonicMs();
    try {
      const results = await commit(batch.map((waiting) => waiting.item));
      if (results.length !== batch.length)
        throw new Error(`${name}: ${results.length} results for ${batch.length} items`);
      batch.forEach((waiting, i) => {
        waiting.resolve(results[i] as Result);
      });
    } catch (error) {
      // Items behind a failed batch fail too: they would wait as long again, probably for the same error.
      for (const waiting of [...batch, ...this.#queue.splice(0)]) waiting.reject(error);
    }
    metrics.batchCommitted(name, batch.length, (clock.monotonicMs() - startedMs) / 1000);
  }
}

interface Waiting<Item, Result> {
  readonly item: Item;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
}
