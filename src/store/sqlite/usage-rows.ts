import type { DatabaseSync, SQLInputValue, StatementSync } from "node:sqlite";
import { hourAt, readingBetween, refilled, settle, type UsageCounter } from "../../domain/usage.ts";
import { type CounterRow, counterColumns, counterOf } from "../sql/counter-row.ts";
import { type Charge, type ChargeResult, refilledAhead, sharedBalance } from "../usage-ledger.ts";

/** A statement of the writer thread, which is compiled once. */
export type Prepare = (sql: string) => StatementSync;

/**
 * Settles one charge inside the open transaction. `atomically` undoes what a function that throws has written: a charge on
 * two counters changes both of them or none.
 */
export function settleCharge(
  prepare: Prepare,
  atomically: (write: () => void) => void,
  charge: Charge,
  nowMs: number,
): ChargeResult {
  const { subject, shared } = charge;
  // Both are read before anything is written: a damaged row fails the charge as a whole.
  const own = readCounter(prepare, subject);
  const other = shared === undefined ? undefined : readCounter(prepare, shared);
  if (own === undefined || (shared !== undefined && other === undefined)) return { outcome: "missing" };
  const after = settle(own, charge, nowMs, other);
  const write = () => {
    writeChanged(prepare, subject, own, after.counter);
    if (shared !== undefined && other && after.shared) writeChanged(prepare, shared, other, after.shared);
  };
  if (shared === undefined && readingBetween(own, after.counter) === undefined) write();
  else atomically(write);
  return {
    outcome: "settled",
    granted: after.granted,
    remaining: after.counter.remaining,
    ...sharedBalance(after.shared?.remaining),
    ...refilledAhead(after.refilledAheadMs),
  };
}

function readCounter(prepare: Prepare, subject: string): UsageCounter | undefined {
  const row = prepare("SELECT * FROM counters WHERE subject = ?").get(subject) as CounterRow | undefined;
  return row && counterOf(row);
}

function writeChanged(prepare: Prepare, subject: string, before: UsageCounter, after: UsageCounter): void {
  if (after === before) return;
  const { remaining, refill, meter } = after;
  prepare(updateText).run(remaining, refill?.refilledThroughMs ?? null, meter.credited, meter.hour, subject);
  const reading = readingBetween(before, after);
  if (reading !== undefined) prepare(addReadingText).run(subject, reading.hour, reading.spent);
}

const updateText =
  "UPDATE counters SET remaining = ?, refilled_through_ms = ?, credited = ?, metered_hour = ? WHERE subject = ?";
const addReadingText = "INSERT INTO readings (subject, hour, spent) VALUES (?, ?, ?) ON CONFLICT DO NOTHING";

/**
 * Gives the connection the refill that is due, as SQL functions of a counter's columns, in their order. They throw on a damaged
 * counter.
 */
export function registerRefills(db: DatabaseSync, nowMs: () => number): void {
  const register = (name: string, resultOf: (counter: UsageCounter) => number | null) =>
    db.function(name, { varargs: true }, (...values: SQLInputValue[]) => {
      const row = Object.fromEntries(counterColumns.map((column, i) => [column, values[i]]));
      return resultOf(refilled(counterOf(row as unknown as CounterRow), nowMs()));
    });
  register("refilled_remaining", ({ remaining }) => remaining);
  register("refilled_through", ({ refill }) => refill?.refilledThroughMs ?? null);
  db.function("ledger_hour", () => hourAt(nowMs()));
}
