import { permitTimeoutMs } from "./deadlines.ts";
import type { PermitPool } from "./permit-pool.ts";
import * as tuning from "./permit-pool-tuning.ts";

/*
 * A pool's estimates: how many requests come, what they cost, and how long an answer takes. They size blocks; nothing
 * depends on them.
 */

export function noteRequest(pool: PermitPool, nowMs: number, cost: number): void {
  const rest = restOfMemory(pool, nowMs);
  pool.ratePerMs = pool.ratePerMs * rest + 1 / tuning.demandMemoryMs;
  pool.unitsPerMs = pool.unitsPerMs * rest + cost / tuning.demandMemoryMs;
  pool.squaresPerMs = pool.squaresPerMs * rest + (cost * cost) / tuning.demandMemoryMs;
  pool.rateAtMs = nowMs;
}

export function noteRoundTrip(pool: PermitPool, sampleMs: number): void {
  pool.rttMs = pool.rttMs === 0 ? sampleMs : pool.rttMs + (sampleMs - pool.rttMs) * tuning.rttWeight;
}

/**
 * The window ends so long after the message was sent, or later by the time that the message took to the ledger. So the
 * latest of these times is the best. A clock that is behind proves nothing.
 */
export function noteWindowEnd(pool: PermitPool, earliestMs: number, isClockBehind: boolean): void {
  const nextMs = earliestMs + pool.rttMs * tuning.jitterShare;
  pool.nextWindowMs = isClockBehind ? nextMs : Math.max(pool.nextWindowMs, nextMs);
}

/** Permits that are needed in a millisecond. */
export function demandPerMs(pool: PermitPool, nowMs: number): number {
  return pool.unitsPerMs * restOfMemory(pool, nowMs);
}

/** As many permits as will probably do for the requests of the next round trip. */
export function neededUntilAnswer(pool: PermitPool, nowMs: number): number {
  const ms = pool.rttMs * restOfMemory(pool, nowMs);
  return pool.unitsPerMs * ms + tuning.lowMarkDeviations * Math.sqrt(pool.squaresPerMs * ms);
}

function restOfMemory(pool: PermitPool, nowMs: number): number {
  return Math.exp((pool.rateAtMs - nowMs) / tuning.demandMemoryMs);
}

/** After this time without requests the replica counts as idle. */
export function idleAfterMs(pool: PermitPool): number {
  return Math.max(tuning.idleMinMs, tuning.idlePausesMin / pool.ratePerMs);
}

/** How much demand a new block should cover: it is used up from when it was asked for. */
export function coveredMs({ rttMs }: PermitPool): number {
  return Math.max(tuning.blockMinMs, 2 * rttMs) + rttMs;
}

/**
 * How long to go on asking for permits that others hold. Requests that wait are refused before they give up, and that is
 * remembered: when the first answer comes short, the oldest of them may have waited for two round trips, and the next
 * answer takes one more.
 */
export function shortMaxMs({ rttMs }: PermitPool): number {
  const inTimeMs = permitTimeoutMs(rttMs) - 3 * rttMs - tuning.retryMaxMs;
  return Math.min(tuning.holdMs + 2 * rttMs, inTimeMs);
}

/** Whether the answer to a message sent now would arrive after the end of the current window. */
export function isTooLate(pool: PermitPool, nowMs: number): boolean {
  return nowMs < pool.nextWindowMs && nowMs + pool.rttMs >= pool.nextWindowMs;
}
