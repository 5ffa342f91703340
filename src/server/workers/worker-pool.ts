import { setTimeout as delay } from "node:timers/promises";
import type { Ambient } from "../../ambient/ambient.ts";
import { type MetricsRegistry, type MetricsSnapshot, renderSum, sumOfCounters } from "../../ambient/metrics.ts";
import { waitAtMost } from "../../ambient/with-timeout.ts";
import type { Serving } from "../serving.ts";
import { ConnectionDealer } from "./connection-dealer.ts";
import type { MainMethods, WorkerSetup } from "./methods.ts";
import { Worker } from "./worker.ts";

export interface WorkerPoolOptions extends Pick<Ambient, "clock" | "log">, MainMethods {
  readonly workers: number;
  /** What a worker is started with now. */
  readonly setupOf: (number: number) => WorkerSetup;
}

/** A worker that lived less than this may never start: others follow more slowly. */
const shortLifeMs = 5000;
const pauseAfterShortLifeMs = 500;
/** How long a new worker waits for its core before it takes connections all the same. */
const readyWaitMs = 2000;
/** How much of its counters a worker that is killed can lose. */
const snapshotEveryMs = 1000;
const dealAllMs = 1000;

/** The processes that serve the public port. Each is replaced when it dies. */
export class WorkerPool implements Serving {
  readonly #options: WorkerPoolOptions;
  readonly #dealer = new ConnectionDealer();
  readonly #workers = new Set<Worker>();
  /** What workers that have ended had counted. */
  #countedByEnded: MetricsSnapshot = [];
  #isReady = false;
  #isClosing = false;
  readonly #snapshots: NodeJS.Timeout;

  constructor(options: WorkerPoolOptions) {
    this.#options = options;
    this.#snapshots = setInterval(() => void this.#snapshotAll(), snapshotEveryMs).unref();
  }

  /** Resolves when all workers have started; rejects if one has not. */
  async start(): Promise<void> {
    const numbers = Array.from({ length: this.#options.workers }, (_, i) => i + 1);
    await Promise.all(numbers.map((number) => this.#launch(number)));
  }

  listen(port: number, host: string): Promise<number> {
    return this.#dealer.listen(port, host);
  }

  async setReady(ready: boolean): Promise<void> {
    this.#isReady = ready;
    await this.#all((worker) => worker.ask("setReady", ready));
  }

  /** Resolves when all workers have the settings that `setupOf` has now. */
  async reload(): Promise<void> {
    await this.#all((worker) => worker.ask("reload", this.#options.setupOf(worker.number).settings));
  }

  startShutdown(): void {
    void this.#all((worker) => worker.ask("startShutdown"));
  }

  stopStreams(): void {
    void this.#all((worker) => worker.ask("stopStreams"));
  }

  async close(graceMs: number): Promise<void> {
    this.#isClosing = true;
    // Without any worker nobody takes them.
    await waitAtMost(dealAllMs, this.#dealer.close());
    await this.#all((worker) => worker.ask("close", graceMs));
  }

  /** Ends the workers themselves. */
  async stop(): Promise<void> {
    this.#isClosing = true;
    clearInterval(this.#snapshots);
    await Promise.all([...this.#workers].map((worker) => worker.stop()));
  }

  /** The same metrics, together with those of all workers when they are rendered. */
  mergeMetrics(metrics: MetricsRegistry): MetricsRegistry {
    const render = async () => {
      const ofWorkers = await this.#snapshotAll();
      return renderSum([await metrics.snapshot(), this.#countedByEnded, ...ofWorkers]);
    };
    return { ...metrics, render };
  }

  #snapshotAll(): Promise<MetricsSnapshot[]> {
    return Promise.all([...this.#workers].map((worker) => worker.snapshot()));
  }

  /** A worker that dies meanwhile is left out: the one that replaces it gets what is true then. */
  async #all(ask: (worker: Worker) => Promise<unknown>): Promise<void> {
    await Promise.allSettled([...this.#workers].map(ask));
  }

  async #launch(number: number): Promise<void> {
    const { clock, log, setupOf, refreshReadiness } = this.#options;
    const launchedAtMs = clock.monotonicMs();
    const worker = new Worker(number, { refreshReadiness });
    this.#workers.add(worker);
    void worker.exited.then((how) => this.#onExit(worker, how, clock.monotonicMs() - launchedAtMs));
    await worker.ask("start", setupOf(number));
    // Settings may have changed since it was started.
    await worker.ask("reload", setupOf(number).settings);
    await waitAtMost(readyWaitMs, worker.ask("setReady", this.#isReady));
    this.#dealer.add(worker);
    log.debug("a worker serves", { worker: number });
  }

  async #onExit(worker: Worker, how: string, livedMs: number): Promise<void> {
    const { log } = this.#options;
    this.#workers.delete(worker);
    this.#dealer.remove(worker);
    this.#countedByEnded = await sumOfCounters([this.#countedByEnded, worker.lastSnapshot]);
    if (this.#isClosing) return;
    log.error("a worker has ended: another takes its place", undefined, { worker: worker.number, how });
    if (livedMs < shortLifeMs) await delay(pauseAfterShortLifeMs);
    if (this.#isClosing) return;
    await this.#launch(worker.number).catch((error: Error) => {
      log.error("a worker could not be started", error, { worker: worker.number });
    });
  }
}
