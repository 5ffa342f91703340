import type { Settings } from "../config/settings.ts";
import type { MaybePromise } from "../domain/maybe-promise.ts";
import type { ServingSettings } from "../threads/methods.ts";
import type { PublicApi } from "./public-api.ts";

/** What serves the public port: this thread, or several other threads. */
export interface Serving {
  /** Resolves to the bound port, or rejects if it cannot be bound. */
  listen(port: number, host: string): Promise<number>;
  setReady(ready: boolean): MaybePromise<void>;
  /** Resolves when all threads have the new settings. */
  reload(settings: Settings): MaybePromise<void>;
  /** Starts a graceful shutdown: from now on the next answer on each connection also tells the client to leave. */
  startShutdown(): void;
  /** Ends streams that would otherwise stay open, such as health watches. */
  stopStreams(): void;
  /** Stops listening. Resolves when all requests under way are answered; after `graceMs` the rest is cut off. */
  close(graceMs: number): Promise<void>;
}

/** What each thread that serves has of the settings which may change. */
export function servingSettingsOf({
  connectionsMax,
  workers,
  logLevel,
  logVerifications,
  tls,
}: Settings): ServingSettings {
  return {
    connectionsMax: Math.ceil(connectionsMax / workers),
    logLevel,
    logVerifications,
    tls: tls && { cert: tls.certPem, key: tls.keyPem.reveal() },
  };
}

/** In this thread. */
export function serveHere({ onePort, setReady, reload, stopStreams, close }: PublicApi): Serving {
  return {
    listen: (port, host) => onePort.listen(port, host),
    setReady,
    reload: (settings) => reload(servingSettingsOf(settings)),
    startShutdown: () => onePort.startShutdown(),
    stopStreams,
    close,
  };
}
