import type { Ambient } from "./ambient.ts";

/** Every block of the event loop that is longer than this is seen. */
const everyMs = 20;

/**
 * Measures how late this thread's event loop gets to what is due, with a timer. Returns a function that stops it. Node's
 * own `monitorEventLoopDelay` keeps no counts that can be added up over threads and scrapes.
 */
export function measureEventLoopDelay(
  thread: string,
  { clock, metrics }: Pick<Ambient, "clock" | "metrics">,
): () => void {
  let lastMs = clock.monotonicMs();
  const timer = setInterval(() => {
    const nowMs = clock.monotonicMs();
    // Timers are exact to a millisecond only: some come early.
    metrics.eventLoopDelayed(thread, Math.max(0, nowMs - lastMs - everyMs) / 1000);
    lastMs = nowMs;
  }, everyMs).unref();
  return () => clearInterval(timer);
}
