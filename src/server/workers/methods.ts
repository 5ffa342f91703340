import type { MetricsSnapshot } from "../../ambient/metrics.ts";
import type { MainProcess } from "../../core/remote/remote-core.ts";
import type { Serving } from "../serving.ts";

/* What the main process and its workers ask each other, beside what goes over the link to the core. */

/** What the main process asks a worker. */
export interface WorkerMethods extends Pick<Serving, "startShutdown" | "stopStreams" | "close"> {
  /** The first call. Resolves when the worker takes connections. */
  start(setup: WorkerSetup): Promise<void>;
  /** Serves a connection that the main process has accepted. It is the worker's when this resolves. */
  takeConnection(handle?: unknown): void;
  /** Resolves when the worker reports it, and not before the worker can answer requests. */
  setReady(ready: boolean): Promise<void>;
  /** Settings as `toMessage` makes them. */
  reload(settings: unknown): Promise<void>;
  snapshot(): Promise<MetricsSnapshot>;
  /** Returns permits and saves windows. The worker exits when the main process has the answer. */
  stop(): Promise<void>;
}

/** What a worker asks the main process. */
export interface MainMethods {
  /** Before it resolves, `setReady` was called if readiness has changed. */
  refreshReadiness(): Promise<void>;
}

export interface WorkerSetup {
  /** From 1 on. */
  readonly number: number;
  /** The worker's own settings, as `toMessage` makes them. */
  readonly settings: unknown;
  /** Absent with role `edge`: each worker has its own links to the coordinators. */
  readonly mainProcess: MainProcess | undefined;
}
