import { EventEmitter, once } from "node:events";
import type { MaybePromise } from "../domain/maybe-promise.ts";

/** Whether new requests should be sent here. Liveness is something else: the process is alive while it answers. */
export class Readiness {
  #ready = false;
  readonly #changes = new EventEmitter().setMaxListeners(0);
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
    this.#changes.emit("change");
  }

  /** Resolves at the next change, or when the signal fires. */
  async changed(signal: AbortSignal): Promise<void> {
    await once(this.#changes, "change", { signal }).catch(() => {});
  }
}
