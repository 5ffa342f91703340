import { setTimeout as delay } from "node:timers/promises";

/** Waits until the work has resolved or rejected, but at most `waitMs`. Never rejects. */
export async function waitAtMost(waitMs: number, work: Promise<unknown>): Promise<void> {
  const timer = new AbortController();
  try {
    await Promise.race([work, delay(waitMs, undefined, { signal: timer.signal })]);
  } catch {
    // Callers that need the result await the work itself.
  } finally {
    timer.abort();
  }
}
