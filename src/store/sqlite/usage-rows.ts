import type { StatementSync } from "node:sqlite";
import { settle } from "../../domain/usage.ts";
import { type CounterRow, counterOf } from "../sql/counter-row.ts";
import { type Charge, type ChargeResult, refilledAhead } from "../usage-ledger.ts";

/** Settles one charge inside the open transaction. */
export function settleCharge(
  prepare: (sql: string) => StatementSync,
  { keyId, wanted }: Charge,
  nowMs: number,
): ChargeResult {
  const row = prepare("SELECT * FROM key_usage WHERE key_id = ?").get(keyId) as CounterRow | undefined;
  if (row === undefined) return { outcome: "missing" };
  const before = counterOf(row);
  const { granted, counter, refilledAheadMs } = settle(before, wanted, nowMs);
  if (counter !== before) {
    prepare("UPDATE key_usage SET remaining = ?, refilled_through_ms = ? WHERE key_id = ?").run(
      counter.remaining,
      counter.refill?.refilledThroughMs ?? null,
      keyId,
    );
  }
  return { outcome: "settled", granted, remaining: counter.remaining, ...refilledAhead(refilledAheadMs) };
}
