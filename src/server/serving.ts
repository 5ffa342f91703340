import type { MaybePromise } from "../domain/maybe-promise.ts";

/** What serves the public port: this process, or its workers. */
export interface Serving {
  /** Resolves to the bound port, or rejects if it cannot be bound. */
  listen(port: number, host: string): Promise<number>;
  setReady(ready: boolean): MaybePromise<void>;
  /** Starts a graceful shutdown: from now on the next answer on each connection also says that the client should leave. */
  startShutdown(): void;
  /** Ends streams that would otherwise stay open, such as health watches. */
  stopStreams(): void;
  /** Stops listening. Resolves when all requests under way are answered; after `graceMs` the rest is cut off. */
  close(graceMs: number): Promise<void>;
}
