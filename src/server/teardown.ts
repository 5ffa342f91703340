import type { Log } from "../ambient/log.ts";

/**
 * The parts of a process, in the order in which they were started. They are stopped in the reverse order, at the end or
 * after a failed start. One that fails to stop does not keep the others from it.
 */
export class Teardown {
  readonly #stack = new AsyncDisposableStack();
  readonly #log: Log;

  constructor(log: Log) {
    this.#log = log;
  }

  /** `stop` may wait for work under way. */
  add(part: string, stop: () => unknown): void {
    this.#stack.defer(async () => {
      await stop();
      this.#log.debug("stopped", { part });
    });
  }

  /** Stops everything. Does nothing the second time. */
  async run(): Promise<void> {
    await this.#stack.disposeAsync();
  }
}
