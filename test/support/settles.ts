import { setTimeout as delay } from "node:timers/promises";

/** Asks until the answer is as wanted, and answers how long that took; throws when it does not come to that. */
export async function settles<T>(ask: () => Promise<T>, wanted: T, withinMs: number): Promise<number> {
  const startMs = performance.now();
  for (;;) {
    const answer = await ask();
    const tookMs = performance.now() - startMs;
    if (answer === wanted) return tookMs;
    if (tookMs > withinMs) throw new Error(`still ${answer} after ${Math.round(tookMs)} ms, not ${wanted}`);
    await delay(20);
  }
}
