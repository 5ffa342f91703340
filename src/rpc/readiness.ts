import type { MaybePromise } from "../domain/maybe-promise.ts";

/** Whether new requests should be sent here. Liveness is something else: the process is alive while it answers. */
export class Readiness {
  #ready = false;
  readonly #listeners = new Set<() => void>();
  /** Checks readiness again and calls `set`. If the check fails, the last value stays. */
  readonly refresh: () => MaybePromise<void>;

  constructor(refresh: () => MaybePromise<void> = () => {}) {
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
