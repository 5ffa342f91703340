import type { AtOnce } from "../domain/at-once.ts";

/** Whether new requests should be sent here. Being alive is another question: that is so while the process answers. */
export class Readiness {
  #ready = false;
  readonly #listeners = new Set<() => void>();
  /** Finds out anew what `set` is to be called with; what was set last counts if that fails. */
  readonly refresh: () => AtOnce<void>;

  constructor(refresh: () => AtOnce<void> = () => {}) {
    this.refresh = refresh;
  }

  get ready(): boolean {
    return this.#ready;
  }

  set(ready: boolean): void {
    if (ready === this.#ready) return;
    this.#ready = ready;
    for (const listener of this.#listeners) listener();
  }

  /** Resolves at the next change, or when the signal fires. */
  changed(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        this.#listeners.delete(done);
        signal.removeEventListener("abort", done);
        resolve();
      };
      this.#listeners.add(done);
      signal.addEventListener("abort", done);
      if (signal.aborted) done();
    });
  }
}
