import type { AtOnce } from "../domain/at-once.ts";
import type { StoreHealth } from "../store/store-health.ts";

/** Tells when requests should come: between start and stop, as long as the store can be used. */
export class ReadyState {
  readonly #health: StoreHealth | undefined;
  readonly #tell: (ready: boolean) => AtOnce<void>;
  #isOpen = false;
  #told = false;

  constructor(health: StoreHealth | undefined, tell: (ready: boolean) => AtOnce<void>) {
    this.#health = health;
    this.#tell = tell;
    // A thread that cannot be told any more has died, which ends the process.
    health?.onChange(() => void this.#update().catch(() => {}));
  }

  /** From start to stop. Resolves when all who serve know. */
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
