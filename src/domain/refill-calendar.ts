/*
 * Refills happen at boundaries: 00:00 UTC of every day, or of the first day of every month. UTC has no daylight
 * saving, and Unix time no leap seconds, so a day is always 86 400 000 ms.
 */

export type RefillInterval = "daily" | "monthly";

const dayMs = 86_400_000;

/** The number of the latest boundary at or before a time. It grows by one at each boundary. */
export function boundaryIndex(interval: RefillInterval, atMs: number): number {
  if (interval === "daily") return Math.floor(atMs / dayMs);
  const date = new Date(atMs);
  return date.getUTCFullYear() * 12 + date.getUTCMonth();
}

/** The time of the boundary with this index. */
export function boundaryMs(interval: RefillInterval, index: number): number {
  if (interval === "daily") return index * dayMs;
  return Date.UTC(Math.floor(index / 12), index % 12, 1);
}

/** The latest boundary at or before a time. */
export function latestBoundaryMs(interval: RefillInterval, atMs: number): number {
  return boundaryMs(interval, boundaryIndex(interval, atMs));
}

/** The first boundary after a time. */
export function nextBoundaryMs(interval: RefillInterval, atMs: number): number {
  return boundaryMs(interval, boundaryIndex(interval, atMs) + 1);
}

/** The number of boundaries after `sinceMs`, up to and including `untilMs`. 0 if time went backwards. */
export function boundariesPassed(interval: RefillInterval, sinceMs: number, untilMs: number): number {
  return Math.max(0, boundaryIndex(interval, untilMs) - boundaryIndex(interval, sinceMs));
}
