import { type Bucket, bucketsOf, runsOutAtMs } from "../domain/spending.ts";
import { hourAt, hourMs, type UsageCounter } from "../domain/usage.ts";
import type { Management } from "../store/management.ts";

export interface Spending {
  readonly id: string;
  readonly spent: number;
  readonly buckets: readonly Bucket[];
  readonly counter: UsageCounter | undefined;
  /** See `runsOutAtMs`. */
  readonly runsOutAtMs: number | undefined;
}

/** What was asked for is too old. */
export interface NotKept {
  readonly oldestMs: number;
  readonly unit: "hour" | "day";
}

const dayMs = 24 * hourMs;

interface SpendingRequest {
  readonly of: "key" | "owner";
  readonly ids: readonly string[];
  /** Ends of hours: of the first bucket its beginning, and of each its end. */
  readonly boundaries: readonly number[];
  readonly nowMs: number;
}

/** The pace of counters is that of the last 24 full hours and the one that runs. */
const paceHours = 24;

export async function getSpending(
  management: Pick<Management, "read">,
  { of, ids, boundaries, nowMs: askedMs }: SpendingRequest,
): Promise<readonly Spending[] | NotKept> {
  const paceHour = hourAt(askedMs) - paceHours;
  const hours = [...boundaries.map(hourAt), paceHour];
  const { nowMs, counters, kept } = await management.read({ kind: "spending", of, ids, hours });
  const unit = boundaries.every((ms) => ms % dayMs === 0) ? "day" : "hour";
  const oldestMs = (unit === "day" ? kept.firstDayHour : kept.firstHour) * hourMs;
  if ((boundaries[0] as number) < oldestMs) return { oldestMs, unit };
  return ids.map((id, i) => {
    const found = counters[i];
    if (found === undefined)
      return nothing(
        id,
        bucketsOf(
          boundaries,
          boundaries.map(() => 0),
          nowMs,
        ),
      );
    const { counter, spentBefore, spent } = found;
    const buckets = bucketsOf(boundaries, spentBefore, nowMs);
    const recent = { spent: spent - (spentBefore.at(-1) as number), sinceMs: paceHour * hourMs };
    return {
      id,
      spent: buckets.reduce((sum, bucket) => sum + bucket.spent, 0),
      buckets,
      counter,
      runsOutAtMs: counter && runsOutAtMs(counter, recent, nowMs),
    };
  });
}

function nothing(id: string, buckets: readonly Bucket[]): Spending {
  return { id, spent: 0, buckets, counter: undefined, runsOutAtMs: undefined };
}
