import type { MaybePromise } from "../domain/maybe-promise.ts";
import type { StoreHealth } from "../store/store-health.ts";

/** Whether requests should come: between start and stop, while the store can be used. */
export class ReadyState {
  readonly #health: StoreHealth | undefined;
  readonly #notify: (ready: boolean) => MaybePromise<void>;
  #isOpen = false;
  #isStopping = false;
  #notified = false;

  constructor(health: StoreHealth | undefined, notify: (ready: boolean) => MaybePromise<void>) {
    this.#health = health;
    this.#notify = notify;
    // A worker that has gone needs no answer.
    health?.onChange(() => void this.#update().catch(() => {}));
  }

  get isStopping(): boolean {
    return this.#isStopping;
  }

  /** Requests may come, unless the process stops already. Resolves when all workers know. */
  async open(): Promise<void> {
    if (this.#isStopping) return;
    this.#isOpen = true;
    await this.#update();
  }

  /** The process stops: a start under way no longer opens. */
  startStop(): void {
    this.#isStopping = true;
  }

  /** No more requests should come. Resolves when all workers know. */
  async close(): Promise<void> {
    this.startStop();
    this.#isOpen = false;
    await this.#update();
  }

  async #update(): Promise<void> {
    const ready = this.#isOpen && this.#health?.problem === undefined;
    if (ready === this.#notified) return;
    this.#notified = ready;
    await this.#notify(ready);
  }
}
