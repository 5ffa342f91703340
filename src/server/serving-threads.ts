import net from "node:net";
import { Worker } from "node:worker_threads";
import { monotonicOriginMs } from "../ambient/clock.ts";
import { type MetricsRegistry, type MetricsSnapshot, renderTogether } from "../ambient/metrics.ts";
import type { Settings } from "../config/settings.ts";
import type { KeyChange, KeyChanges } from "../store/key-changes.ts";
import { createHomeMethods, type Home } from "../threads/home-methods.ts";
import type { HomeMethods, ServingMethods, ServingSetup, SharedWindows } from "../threads/methods.ts";
import { ThreadLink } from "../threads/thread-link.ts";
import type { KeyMemory } from "./key-changes.ts";
import type { LocalLimits } from "./local-limits.ts";
import type { Serving } from "./serving.ts";

/** How soon the others tell ends of windows by a wall clock that was set. */
const followClockMs = 100;

/**
 * Threads that serve the public port side by side: the system hands each of them its part of the connections. This thread
 * is their home: it answers what they ask, and they do together what it says.
 */
export class ServingThreads implements Serving, KeyChanges, KeyMemory {
  readonly #onFatal: (cause: unknown) => void;
  #workers: Worker[] = [];
  #links: ThreadLink<HomeMethods, ServingMethods>[] = [];
  #followingClock: NodeJS.Timeout | undefined;
  #ending = false;

  constructor(onFatal: (cause: unknown) => void) {
    this.#onFatal = onFatal;
  }

  start(settings: Settings, shared: Pick<Home, "keys" | "usage" | "limiter" | "log">, local: LocalLimits): void {
    const home: Home = { ...shared, table: local.table, listener: local.listener };
    let { unixOffsetMs } = local.limiter;
    const origin = monotonicOriginMs();
    for (let thread = 1; thread <= settings.workers; thread++) {
      const setup: ServingSetup = {
        thread,
        monotonicOriginMs: origin,
        unixOffsetMs,
        windows: local.shared as SharedWindows,
        hasListener: home.listener !== undefined,
        cacheTtlMs: settings.cacheTtlMs,
        cacheKeysMax: settings.cacheKeysMax,
        fastPath: settings.fastPath,
        debug: home.log.debugEnabled,
      };
      const worker = this.#run(setup);
      this.#workers.push(worker);
      const link = new ThreadLink<HomeMethods, ServingMethods>(worker, createHomeMethods(home, thread));
      worker.on("message", (batch) => link.hear(batch));
      this.#links.push(link);
    }
    this.#followingClock = setInterval(() => {
      if (local.limiter.unixOffsetMs === unixOffsetMs) return;
      unixOffsetMs = local.limiter.unixOffsetMs;
      for (const link of this.#links) link.tell("tellTimeBy", unixOffsetMs);
    }, followClockMs).unref();
  }

  /** Rejects with what Node says when the port is taken, or where the system does not share a port between listeners. */
  async listen(port: number, host: string): Promise<number> {
    const free = await findFree(port, host);
    await Promise.all(this.#links.map((link) => link.ask("listen", free, host)));
    return free;
  }

  learnRootKeys(digests: readonly string[] | undefined): void {
    for (const link of this.#links) link.tell("learnRootKeys", digests);
  }

  async setReady(ready: boolean): Promise<void> {
    await Promise.all(this.#links.map((link) => link.ask("setReady", ready)));
  }

  /** Resolves when no thread serves what it remembered of the key. */
  async announce(change: KeyChange): Promise<void> {
    await Promise.all(this.#links.map((link) => link.ask("forget", change)));
  }

  forget(change: KeyChange): void {
    for (const link of this.#links) link.tell("forget", change);
  }

  forgetAll(): void {
    for (const link of this.#links) link.tell("forgetAll");
  }

  /** Metrics that are rendered together with those of all threads. */
  togetherWith(metrics: MetricsRegistry): MetricsRegistry {
    const snapshots = (): Promise<MetricsSnapshot[]> =>
      Promise.all([metrics.snapshot(), ...this.#links.map((link) => link.ask("snapshot"))]);
    return { ...metrics, render: async () => renderTogether(await snapshots()) };
  }

  startClosing(): void {
    for (const link of this.#links) link.tell("startClosing");
  }

  stopStreams(): void {
    for (const link of this.#links) link.tell("stopStreams");
  }

  async close(graceMs: number): Promise<void> {
    await Promise.all(this.#links.map((link) => link.ask("close", graceMs)));
  }

  /** Ends the threads themselves. */
  async end(): Promise<void> {
    this.#ending = true;
    clearInterval(this.#followingClock);
    await Promise.all(this.#workers.map((worker) => worker.terminate()));
  }

  #run(setup: ServingSetup): Worker {
    // Beside this file, with its extension: TypeScript in the repository, JavaScript in the package.
    const extension = import.meta.url.slice(import.meta.url.lastIndexOf("."));
    const file = new URL(`./serving-thread${extension}`, import.meta.url);
    const worker = new Worker(file, { workerData: setup, name: `serving-${setup.thread}` });
    let cause: unknown;
    worker.on("error", (error) => {
      cause = error;
    });
    worker.on("exit", (code) => {
      // The others could go on, but the connections of this one are lost, and what it held stays held.
      if (!this.#ending) this.#onFatal(cause ?? new Error(`serving thread ${setup.thread} exited with ${code}`));
    });
    return worker;
  }
}

/** Those who share a port would also share it with another process that does: so it is tried alone first. */
function findFree(port: number, host: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const alone = net.createServer();
    alone.once("error", reject);
    alone.listen({ port, host }, () => {
      const { port: free } = alone.address() as net.AddressInfo;
      alone.close(() => resolve(free));
    });
  });
}
