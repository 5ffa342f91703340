import { boundaryIndex, boundaryMs, nextBoundaryMs } from "./refill-calendar.ts";
import { hourMs, nextRefillMs, type UsageCounter } from "./usage.ts";

/* How what was spent is asked for: in buckets, each from one boundary to the next. All times are UTC. */

export type Granularity = "hour" | "day" | "month" | "total";

/** Most buckets that one counter is asked for. */
const bucketsMax: { readonly [Each in Granularity]: number } = { hour: 744, day: 731, month: 60, total: 1 };

/** Most readings that are looked up for one question. */
export const readingsMax = 10_000;

/** When uses that are under way at the end of a bucket have been charged. */
const settledAfterMs = 10_000;

export interface SpendingRange {
  readonly startMs: number;
  readonly endMs: number;
  readonly granularity: Granularity;
}

/** What is wrong with a range; the message completes the sentence that the field begins. */
export interface RangeProblem {
  readonly field: "start" | "end";
  readonly message: string;
}

/** The boundaries from the start to the end, both included. At most one more than there may be buckets, or what is wrong. */
export function boundariesIn({ startMs, endMs, granularity }: SpendingRange): readonly number[] | RangeProblem {
  const unit = granularity === "total" ? "hour" : granularity;
  for (const [field, ms] of [["start", startMs] as const, ["end", endMs] as const])
    if (!isBoundary(unit, ms))
      return { field, message: `must be the beginning of ${unit === "hour" ? "an" : "a"} ${unit} in UTC` };
  if (granularity === "total") return [startMs, endMs];
  const boundaries = [startMs];
  for (let ms = startMs; ms < endMs; ) {
    if (boundaries.length > bucketsMax[granularity]) return { field: "end", message: tooLong[granularity] };
    ms = nextBoundary(granularity, ms);
    boundaries.push(ms);
  }
  return boundaries;
}

const tooLong = {
  hour: "must be at most 744 hours after start: ask for days, or for a part",
  day: "must be at most 731 days after start: ask for months, or for a part",
  month: "must be at most 60 months after start: ask for the total, or for a part",
};

function isBoundary(unit: Exclude<Granularity, "total">, ms: number): boolean {
  if (unit === "hour") return ms % hourMs === 0;
  const interval = unit === "day" ? "daily" : "monthly";
  return boundaryMs(interval, boundaryIndex(interval, ms)) === ms;
}

function nextBoundary(unit: Exclude<Granularity, "total">, ms: number): number {
  return unit === "hour" ? ms + hourMs : nextBoundaryMs(unit === "day" ? "daily" : "monthly", ms);
}

export interface Bucket {
  readonly startMs: number;
  readonly endMs: number;
  readonly spent: number;
  /** Whether it can still grow. */
  readonly isRunning: boolean;
}

/** `spentBefore`: what was spent before each boundary. Buckets that have not begun are left out. */
export function bucketsOf(boundaries: readonly number[], spentBefore: readonly number[], nowMs: number): Bucket[] {
  return boundaries.slice(0, -1).flatMap((startMs, i) => {
    const endMs = boundaries[i + 1] as number;
    if (startMs > nowMs) return [];
    const spent = (spentBefore[i + 1] as number) - (spentBefore[i] as number);
    return [{ startMs, endMs, spent, isRunning: nowMs < endMs + settledAfterMs }];
  });
}

/** The last moment that callers can have in a message: the end of the year 9999. */
const momentMax = 253_402_300_799_999;

/** When nothing is left, if uses go on as they did since then. Undefined: never, or not before the next refill. */
export function runsOutAtMs(
  counter: UsageCounter,
  recent: { readonly spent: number; readonly sinceMs: number },
  nowMs: number,
): number | undefined {
  if (recent.spent <= 0) return undefined;
  const { remaining, meter } = counter;
  // The first uses of a new counter are no pace yet.
  const elapsedMs = Math.max(hourMs, nowMs - Math.max(recent.sinceMs, meter.sinceMs));
  const endMs = Math.ceil(nowMs + (remaining * elapsedMs) / recent.spent);
  return endMs > momentMax || (nextRefillMs(counter) ?? endMs + 1) <= endMs ? undefined : endMs;
}
