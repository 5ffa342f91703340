import type { MaybePromise } from "../domain/maybe-promise.ts";
import type { PublicApi } from "./public-api.ts";

/** What serves the public port: this thread, or several other threads. */
export interface Serving {
  /** Resolves to the bound port, or rejects if it cannot be bound. */
  listen(port: number, host: string): Promise<number>;
  setReady(ready: boolean): MaybePromise<void>;
  /** Starts a graceful shutdown: from now on the next answer on each connection also tells the client to leave. */
  startShutdown(): void;
  /** Ends streams that would otherwise stay open, such as health watches. */
  stopStreams(): void;
  /** Stops listening. Resolves when all requests under way are answered; after `graceMs` the rest is cut off. */
  close(graceMs: number): Promise<void>;
}

/** In this thread. */
export function serveHere({ onePort, setReady, stopStreams, close }: PublicApi): Serving {
  return {
    listen: (port, host) => onePort.listen(port, host),
    setReady,
    startShutdown: () => onePort.startShutdown(),
    stopStreams,
    close,
  };
}
