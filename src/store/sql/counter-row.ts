import { andThen, type MaybePromise } from "../../domain/maybe-promise.ts";
import type { RefillInterval } from "../../domain/refill-calendar.ts";
import { Unavailable } from "../../domain/unavailable.ts";
import { refilled, remainingMax, type UsageCounter } from "../../domain/usage.ts";
import { isIntegerIn } from "./read-columns.ts";
import type { SqlEngine } from "./sql-engine.ts";

/** A counter's columns, as they are stored. */
export interface CounterRow {
  readonly remaining: number;
  readonly refill_interval: string | null;
  readonly refill_amount: number | null;
  readonly refill_carry_over: number | null;
  readonly refilled_through_ms: number | null;
  readonly credited: number;
  readonly metered_hour: number;
  readonly metered_since_ms: number;
  readonly former_spent: number;
}

export const counterColumns = [
  "remaining",
  "refill_interval",
  "refill_amount",
  "refill_carry_over",
  "refilled_through_ms",
  "credited",
  "metered_hour",
  "metered_since_ms",
  "former_spent",
] as const satisfies readonly (keyof CounterRow)[];

/** Throws on a row that this code cannot have written: using it could grant uses that were never issued. */
export function counterOf(row: CounterRow): UsageCounter {
  if (!isSound(row)) throw new Error("the stored counter is damaged");
  const refill = {
    interval: row.refill_interval as RefillInterval,
    amount: row.refill_amount as number,
    carryOver: row.refill_carry_over === 1,
    refilledThroughMs: row.refilled_through_ms as number,
  };
  const { remaining, credited, metered_hour: hour, metered_since_ms: sinceMs, former_spent: formerSpent } = row;
  return {
    remaining,
    refill: row.refill_interval === null ? undefined : refill,
    meter: { credited, hour, sinceMs, formerSpent },
  };
}

/** The columns of a counter in a row that may have none. */
export interface CounterColumns extends Omit<CounterRow, "remaining"> {
  readonly remaining: number | null;
}

/** The counter in the row of a key or owner, which may have none. Throws `Unavailable`, for this one only. */
export function readCounter(row: CounterColumns): UsageCounter | undefined {
  if (row.remaining === null) return undefined;
  try {
    return counterOf(row as CounterRow);
  } catch (cause) {
    throw new Unavailable("a stored counter cannot be read", { cause, affectsOneKeyOnly: true });
  }
}

/** Keys or owners with every refill that is due, by the clock that refills go by: it is what the next verification finds. */
export function withDueRefills<Holder extends { readonly counter: UsageCounter | undefined }>(
  { ledgerNowMs }: SqlEngine,
  holders: readonly Holder[],
): MaybePromise<readonly Holder[]> {
  if (!holders.some(({ counter }) => counter?.refill !== undefined)) return holders;
  return andThen(ledgerNowMs(), (nowMs) =>
    holders.map((each) => (each.counter === undefined ? each : { ...each, counter: refilled(each.counter, nowMs) })),
  );
}

function isSound(row: CounterRow): boolean {
  if (!isIntegerIn(0, row.remaining, remainingMax)) return false;
  // What was spent is never below what others had spent before.
  if (!isIntegerIn(row.remaining, row.credited, Number.MAX_SAFE_INTEGER)) return false;
  if (!isIntegerIn(0, row.former_spent, row.credited - row.remaining)) return false;
  if (!Number.isSafeInteger(row.metered_hour) || !Number.isSafeInteger(row.metered_since_ms)) return false;
  if (row.refill_interval === null) return true;
  return (
    (row.refill_interval === "daily" || row.refill_interval === "monthly") &&
    isIntegerIn(1, row.refill_amount, remainingMax) &&
    isIntegerIn(0, row.refill_carry_over, 1) &&
    Number.isSafeInteger(row.refilled_through_ms)
  );
}
