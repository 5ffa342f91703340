/*
 * Refills happen at boundaries: 00:00 UTC of every day, or of the first day of every month. UTC has no daylight
 * saving, and Unix time no leap seconds, so a day is always 86 400 000 ms.
 */

export type RefillInterval = "daily" | "monthly";

const dayMs = 86_400_000;

/** The boundaries at or before a moment, counted from some fixed one: it grows by one at each boundary. */
export function boundaryIndex(interval: RefillInterval, atMs: number): number {
  if (interval === "daily") return Math.floor(atMs / dayMs);
  const date = new Date(atMs);
  return date.getUTCFullYear() * 12 + date.getUTCMonth();
}

/** When the boundary of that index is. */
export function boundaryMs(interval: RefillInterval, index: number): number {
  if (interval === "daily") return index * dayMs;
  return Date.UTC(Math.floor(index / 12), index % 12, 1);
}

/** The latest boundary at or before a moment. */
export function latestBoundaryMs(interval: RefillInterval, atMs: number): number {
  return boundaryMs(interval, boundaryIndex(interval, atMs));
}

/** How many boundaries lie after `sinceMs`, up to and including `untilMs`. 0 when time has gone backwards. */
export function boundariesPassed(interval: RefillInterval, sinceMs: number, untilMs: number): number {
  return Math.max(0, boundaryIndex(interval, untilMs) - boundaryIndex(interval, sinceMs));
}
