import { uptime } from "node:os";
// Not the global, which is looked up again at each use: every decision reads the clock.
import { performance } from "node:perf_hooks";
import { threadDelay } from "./event-loop-delay.ts";

/** The only source of time outside this file. */
export interface Clock {
  /** Unix time in milliseconds. It can step forwards and backwards. */
  nowMs(): number;
  /** Milliseconds since some fixed moment; never steps. For measuring durations. */
  monotonicMs(): number;
  /** How late this thread's event loop was so far, added up, while it is measured. Never falls. */
  lateMs(): number;
}

export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  lateMs: () => threadDelay.totalMs,
};

/**
 * How long this machine has slept, counted from some fixed moment. On most systems monotonic time stands still during
 * sleep, but the time since the machine's start does not.
 */
export function sleptMs(): number {
  return uptime() * 1000 - performance.now();
}

/**
 * Starts at the current Unix time and then follows monotonic time, so that setting the wall clock changes nothing. In
 * whole milliseconds.
 */
export function anchored(clock: Clock): Pick<Clock, "nowMs"> {
  const originMs = clock.nowMs() - clock.monotonicMs();
  return { nowMs: () => Math.floor(originMs + clock.monotonicMs()) };
}
