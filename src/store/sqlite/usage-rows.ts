import type { StatementSync } from "node:sqlite";
import { settle } from "../../domain/usage.ts";
import { type CounterRow, counterOf } from "../sql/counter-row.ts";
import { type Charge, type ChargeResult, refilledAhead } from "../usage-ledger.ts";

/** Settles one charge inside the open transaction. */
export function settleCharge(
  prepare: (sql: string) => StatementSync,
  { subject, wanted }: Charge,
  nowMs: number,
): ChargeResult {
  const row = prepare("SELECT * FROM counters WHERE subject = ?").get(subject) as CounterRow | undefined;
  if (row === undefined) return { outcome: "missing" };
  const before = counterOf(row);
  const { granted, counter, refilledAheadMs } = settle(before, wanted, nowMs);
  if (counter !== before) {
    prepare("UPDATE counters SET remaining = ?, refilled_through_ms = ? WHERE subject = ?").run(
      counter.remaining,
      counter.refill?.refilledThroughMs ?? null,
      subject,
    );
  }
  return { outcome: "settled", granted, remaining: counter.remaining, ...refilledAhead(refilledAheadMs) };
}
