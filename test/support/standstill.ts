import { atTestEnd } from "./test-end.ts";

const everyMs = 5;
/** A shorter pause delays no message by more than a busy machine always does. */
const pauseMinMs = 15;

/**
 * Notes when this process stood still: for a collection of garbage, or because the machine had no time for it. Servers in
 * this process stood still as well, and could not hear of any change. Answers how much of a time that was.
 */
export function watchStandstill(): (fromMs: number, toMs: number) => number {
  const pauses: { fromMs: number; toMs: number }[] = [];
  let lastMs = performance.now();
  const timer = setInterval(() => {
    const nowMs = performance.now();
    if (nowMs - lastMs >= everyMs + pauseMinMs) pauses.push({ fromMs: lastMs, toMs: nowMs });
    lastMs = nowMs;
  }, everyMs);
  atTestEnd(() => clearInterval(timer));
  return (fromMs, toMs) => {
    const within = pauses.map((pause) => Math.min(pause.toMs, toMs) - Math.max(pause.fromMs, fromMs));
    return within.reduce((sum, ms) => sum + Math.max(0, ms), 0);
  };
}
