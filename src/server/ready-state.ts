import type { AtOnce } from "../domain/at-once.ts";
import type { StoreHealth } from "../store/store-health.ts";

/** Whether requests should come: between start and stop, while the store can be used. */
export class ReadyState {
  readonly #health: StoreHealth | undefined;
  readonly #tell: (ready: boolean) => AtOnce<void>;
  #isOpen = false;
  #told = false;

  constructor(health: StoreHealth | undefined, tell: (ready: boolean) => AtOnce<void>) {
    this.#health = health;
    this.#tell = tell;
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
    if (ready === this.#told) return;
    this.#told = ready;
    await this.#tell(ready);
  }
}
