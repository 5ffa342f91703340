// Not the global: see clock.ts.
import { performance } from "node:perf_hooks";

/** Every block of the event loop that is longer than this is seen. */
const everyMs = 20;

/** How late an event loop gets to what is due, added up while something ticks it. */
export class EventLoopDelay {
  readonly #nowMs: () => number;
  #tickers = 0;
  #lastTickMs = 0;
  #ticksLateMs = 0;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** With the delay of the tick that is due. Whoever asks may have its turn before that tick. */
  get totalMs(): number {
    return this.#tickers === 0 ? this.#ticksLateMs : this.#ticksLateMs + this.#sinceDueMs(this.#nowMs());
  }

  /** Ticks from now on and reports how late each tick was. Returns a function that stops it. */
  start(onTick: (lateMs: number) => void): () => void {
    if (this.#tickers++ === 0) this.#lastTickMs = this.#nowMs();
    const timer = setInterval(() => {
      const nowMs = this.#nowMs();
      const lateMs = this.#sinceDueMs(nowMs);
      this.#ticksLateMs += lateMs;
      this.#lastTickMs = nowMs;
      onTick(lateMs);
    }, everyMs).unref();
    return () => {
      clearInterval(timer);
      this.#tickers--;
    };
  }

  /** Timers are exact to a millisecond only: some come early. */
  #sinceDueMs(nowMs: number): number {
    return Math.max(0, nowMs - this.#lastTickMs - everyMs);
  }
}

/** The delay of this thread. Deadlines are extended by it. */
export const threadDelay = new EventLoopDelay(() => performance.now());

/**
 * Measures how late this process's event loop is, as long as the server runs. Returns a function that stops it. Node's own
 * `monitorEventLoopDelay` keeps no counts that can be added up over processes and scrapes.
 */
export function measureEventLoopDelay(
  name: string,
  metrics: { eventLoopDelayed(worker: string, seconds: number): void },
  delay = threadDelay,
): () => void {
  return delay.start((lateMs) => metrics.eventLoopDelayed(name, lateMs / 1000));
}
