import type { StatementSync } from "node:sqlite";
import { settle, type UsageCounter } from "../../domain/usage.ts";
import { type CounterRow, counterOf } from "../sql/counter-row.ts";
import { type Charge, type ChargeResult, refilledAhead, sharedBalance } from "../usage-ledger.ts";

/**
 * Settles one charge inside the open transaction. `atomically` undoes what a function that throws has written: a charge on
 * two counters changes both of them or none.
 */
export function settleCharge(
  prepare: (sql: string) => StatementSync,
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
  const writeOwn = () => writeChanged(prepare, subject, own, after.counter);
  if (shared === undefined || other === undefined || after.shared === undefined) writeOwn();
  else {
    const sharedAfter = after.shared;
    atomically(() => {
      writeOwn();
      writeChanged(prepare, shared, other, sharedAfter);
    });
  }
  return {
    outcome: "settled",
    granted: after.granted,
    remaining: after.counter.remaining,
    ...sharedBalance(after.shared?.remaining),
    ...refilledAhead(after.refilledAheadMs),
  };
}

function readCounter(prepare: (sql: string) => StatementSync, subject: string): UsageCounter | undefined {
  const row = prepare("SELECT * FROM counters WHERE subject = ?").get(subject) as CounterRow | undefined;
  return row && counterOf(row);
}

function writeChanged(
  prepare: (sql: string) => StatementSync,
  subject: string,
  before: UsageCounter,
  after: UsageCounter,
): void {
  if (after === before) return;
  prepare("UPDATE counters SET remaining = ?, refilled_through_ms = ? WHERE subject = ?").run(
    after.remaining,
    after.refill?.refilledThroughMs ?? null,
    subject,
  );
}
