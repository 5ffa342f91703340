import net from "node:net";
import { Worker } from "node:worker_threads";
import { monotonicOriginMs } from "../ambient/clock.ts";
import { type MetricsRegistry, renderMerged } from "../ambient/metrics.ts";
import type { Settings } from "../config/settings.ts";
import type { Change, ChangeAudience, ChangeCache } from "../store/changes.ts";
import { createMainThreadMethods, type MainThread } from "../threads/main-thread-methods.ts";
import type { MainThreadMethods, ServingMethods, ServingSetup, WindowMemory } from "../threads/methods.ts";
import { type Answer, type Args, ThreadLink } from "../threads/thread-link.ts";
import type { LocalLimits } from "./local-limits.ts";
import { type Serving, servingSettingsOf } from "./serving.ts";
import { tracingOf } from "./tracing.ts";

type Link = ThreadLink<MainThreadMethods, ServingMethods>;

/** How soon all threads follow a change of the wall clock. */
const followClockMs = 100;

/**
 * The threads that serve the public port. The system spreads the connections over them. This, the main thread, answers
 * their questions and sends them commands.
 */
export class ServingThreadPool implements Serving, ChangeAudience, ChangeCache {
  readonly #onFatal: (cause: unknown) => void;
  readonly #links = new Map<Worker, Link>();
  #followingClock: NodeJS.Timeout | undefined;
  #ending = false;

  constructor(onFatal: (cause: unknown) => void) {
    this.#onFatal = onFatal;
  }

  start(settings: Settings, services: Omit<MainThread, "table" | "listener">, local: LocalLimits): void {
    const mainThread: MainThread = { ...services, table: local.table, listener: local.listener };
    let { unixOffsetMs } = local.limiter;
    const origin = monotonicOriginMs();
    for (let thread = 1; thread <= settings.workers; thread++) {
      const setup: ServingSetup = {
        thread,
        monotonicOriginMs: origin,
        unixOffsetMs,
        windows: local.windowMemory as WindowMemory,
        hasListener: mainThread.listener !== undefined,
        cacheTtlMs: settings.cacheTtlMs,
        cacheKeysMax: settings.cacheKeysMax,
        fastPath: settings.fastPath,
        verifyAuth: settings.verifyAuth,
        publicUrl: settings.publicUrl,
        corsOrigins: settings.corsOrigins,
        tracing: tracingOf(settings),
        settings: servingSettingsOf(settings),
      };
      this.#run(setup, createMainThreadMethods(mainThread, thread));
    }
    this.#followingClock = setInterval(() => {
      if (local.limiter.unixOffsetMs === unixOffsetMs) return;
      unixOffsetMs = local.limiter.unixOffsetMs;
      this.#notifyAll("setUnixOffset", unixOffsetMs);
    }, followClockMs).unref();
  }

  /** Rejects with Node's error if the port is in use, or if the system cannot share a port between listeners. */
  async listen(port: number, host: string): Promise<number> {
    if (port !== 0) await bindAlone(port, host);
    const [first, ...others] = [...this.#links.values()] as [Link, ...Link[]];
    const bound = await first.ask("listen", port, host);
    await Promise.all(others.map((link) => link.ask("listen", bound, host)));
    return bound;
  }

  async setReady(ready: boolean): Promise<void> {
    await this.#askAll("setReady", ready);
  }

  async reload(settings: Settings): Promise<void> {
    await this.#askAll("reload", servingSettingsOf(settings));
  }

  /** Resolves when no thread serves what was changed as it was. */
  async broadcast(change: Change): Promise<void> {
    await this.#askAll("invalidate", change);
  }

  invalidate(change: Change): void {
    this.#notifyAll("invalidate", change);
  }

  invalidateAll(): void {
    this.#notifyAll("invalidateAll");
  }

  /** Resolves when all threads have forgotten everything. */
  async forgetAll(): Promise<void> {
    await this.#askAll("invalidateAll");
  }

  newsIsCurrent(atMs: number): void {
    this.#notifyAll("newsIsCurrent", atMs);
  }

  /** The same metrics, merged with those of all threads when they are rendered. */
  mergeMetrics(metrics: MetricsRegistry): MetricsRegistry {
    const render = async () => renderMerged([await metrics.snapshot(), ...(await this.#askAll("snapshot"))]);
    return { ...metrics, render };
  }

  startShutdown(): void {
    this.#notifyAll("startShutdown");
  }

  stopStreams(): void {
    this.#notifyAll("stopStreams");
  }

  async close(graceMs: number): Promise<void> {
    await this.#askAll("close", graceMs);
  }

  /** Ends the threads themselves. */
  async end(): Promise<void> {
    this.#ending = true;
    clearInterval(this.#followingClock);
    await Promise.all([...this.#links.keys()].map((worker) => worker.terminate()));
  }

  readonly #notifyAll: Link["notify"] = (...call) => {
    for (const link of this.#links.values()) link.notify(...call);
  };

  #askAll<Asked extends keyof ServingMethods>(
    name: Asked,
    ...args: Args<ServingMethods[Asked]>
  ): Promise<Answer<ServingMethods[Asked]>[]> {
    return Promise.all([...this.#links.values()].map((link) => link.ask(name, ...args)));
  }

  #run(setup: ServingSetup, methods: MainThreadMethods): void {
    const file = new URL("./serving-thread.ts", import.meta.url);
    const worker = new Worker(file, { workerData: setup, name: `serving-${setup.thread}` });
    const link: Link = new ThreadLink(worker, methods);
    this.#links.set(worker, link);
    worker.on("message", (batch) => link.onMessage(batch));
    let cause: unknown;
    worker.on("error", (error) => {
      cause = error;
    });
    worker.on("exit", (code) => {
      this.#links.delete(worker);
      cause ??= new Error(`serving thread ${setup.thread} exited with ${code}`);
      link.onDisconnect(cause);
      // The other threads could continue, but this one's connections are lost, and the permits it held stay held.
      if (!this.#ending) this.#onFatal(cause);
    });
  }
}

/** With `reusePort`, another process could share the port unnoticed. So it is first bound exclusively, for a moment. */
function bindAlone(port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const alone = net.createServer();
    alone.once("error", reject);
    alone.listen({ port, host }, () => alone.close(() => resolve()));
  });
}
