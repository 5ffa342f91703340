import type { AtOnce } from "../domain/at-once.ts";
import type { PublicApi } from "./public-api.ts";

/** Whoever answers on the public port: this thread, or several others. */
export interface Serving {
  /** Resolves to the port that was bound; rejects when it cannot be. */
  listen(port: number, host: string): Promise<number>;
  learnRootKeys(digests: readonly string[] | undefined): void;
  setReady(ready: boolean): AtOnce<void>;
  /** From now on clients are told to go elsewhere, along with the answer to what they asked. */
  startClosing(): void;
  /** Ends what goes on until somebody ends it. */
  stopStreams(): void;
  /** Stops listening and resolves when everything under way has been answered; what takes longer is cut off. */
  close(graceMs: number): Promise<void>;
}

/** In this thread. */
export function serveHere({ onePort, setReady, stopStreams }: PublicApi): Serving {
  return {
    listen: (port, host) => onePort.listen(port, host),
    learnRootKeys() {},
    setReady,
    startClosing: () => onePort.startClosing(),
    stopStreams,
    close: (graceMs) => onePort.close(graceMs),
  };
}
