import { uptime } from "node:os";
// Not the global, which is looked up anew each time: this is read with every decision.
import { performance } from "node:perf_hooks";

/** Time, as everything but this file gets it. */
export interface Clock {
  /** Unix time in milliseconds. It can step forwards and backwards. */
  nowMs(): number;
  /** Milliseconds since some fixed moment; never steps. For measuring how long a thing took. */
  monotonicMs(): number;
}

export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
};

/** When this thread's monotonic time began, by a clock that all threads share. */
export function monotonicOriginMs(): number {
  // The two clocks are not read at the same moment: the closest of some tries.
  const tries = Array.from({ length: 20 }, () => Number(process.hrtime.bigint()) / 1e6 - performance.now());
  return Math.max(...tries);
}

/** For a thread that has to agree on monotonic time with the one whose time began at `originMs`. */
export function createThreadClock(originMs: number): Clock {
  const aheadMs = monotonicOriginMs() - originMs;
  return { nowMs: () => Date.now(), monotonicMs: () => performance.now() + aheadMs };
}

/**
 * For how long this machine has slept, counted from some fixed moment: on most systems monotonic time stands still
 * meanwhile, and the time since the start of the machine does not.
 */
export function sleptMs(): number {
  return uptime() * 1000 - performance.now();
}

/**
 * Unix time as it is now, and from then on as monotonic time goes: somebody who sets the clock changes nothing. In whole
 * milliseconds.
 */
export function anchored(clock: Clock): Pick<Clock, "nowMs"> {
  const originMs = clock.nowMs() - clock.monotonicMs();
  return { nowMs: () => Math.floor(originMs + clock.monotonicMs()) };
}
