import { setTimeout as delay } from "node:timers/promises";

/** Waits until the work has ended, well or not, but no longer than that. Never rejects. */
export async function within(waitMs: number, work: Promise<unknown>): Promise<void> {
  const timer = new AbortController();
  try {
    await Promise.race([work, delay(waitMs, undefined, { signal: timer.signal })]);
  } catch {
    // Who needs the result of the work waits for the work.
  } finally {
    timer.abort();
  }
}
