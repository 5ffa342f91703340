import type { MaybePromise } from "../domain/maybe-promise.ts";
import type { StoreHealth } from "../store/store-health.ts";

/** Whether requests should come: between start and stop, while the store can be used. */
export class ReadyState {
  readonly #health: StoreHealth | undefined;
  readonly #notify: (ready: boolean) => MaybePromise<void>;
  #isOpen = false;
  #notified = false;

  constructor(health: StoreHealth | undefined, notify: (ready: boolean) => MaybePromise<void>) {
    this.#health = health;
    this.#notify = notify;
    // It fails only if a thread has died, and that ends the process anyway.
    health?.onChange(() => void this.#update().catch(() => {}));
  }

  /** Set at start and stop. Resolves when all serving threads know. */
  async setOpen(isOpen: boolean): Promise<void> {
    this.#isOpen = isOpen;
    await this.#update();
  }

  async #update(): Promise<void> {
    const ready = this.#isOpen && this.#health?.problem === undefined;
    if (ready === this.#notified) return;
    this.#notified = ready;
    await this.#notify(ready);
  }
}
