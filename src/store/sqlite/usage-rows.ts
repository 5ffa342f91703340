import type { StatementSync } from "node:sqlite";
import type { RefillInterval } from "../../domain/refill-calendar.ts";
import { remainingMax, settle, type UsageCounter } from "../../domain/usage.ts";
import { type Charge, type ChargeResult, refilledAhead } from "../usage-ledger.ts";
import { isIntegerIn } from "./is-integer-in.ts";

/** Settles one charge inside the open transaction. */
export function settleCharge(
  prepare: (sql: string) => StatementSync,
  { keyId, wanted }: Charge,
  nowMs: number,
): ChargeResult {
  const row = prepare("SELECT * FROM key_usage WHERE key_id = ?").get(keyId) as UsageRow | undefined;
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

interface UsageRow {
  remaining: number;
  refill_interval: RefillInterval | null;
  refill_amount: number;
  refill_carry_over: number;
  refilled_through_ms: number;
}

/** Throws on a row that this code cannot have written: using it could grant uses that were never issued. */
function counterOf(row: UsageRow): UsageCounter {
  if (!isSound(row)) throw new Error("the stored counter is damaged");
  return {
    remaining: row.remaining,
    refill:
      row.refill_interval === null
        ? undefined
        : {
            interval: row.refill_interval,
            amount: row.refill_amount,
            carryOver: row.refill_carry_over === 1,
            refilledThroughMs: row.refilled_through_ms,
          },
  };
}

function isSound(row: UsageRow): boolean {
  if (!isIntegerIn(0, row.remaining, remainingMax)) return false;
  if (row.refill_interval === null) return true;
  return (
    (row.refill_interval === "daily" || row.refill_interval === "monthly") &&
    isIntegerIn(1, row.refill_amount, remainingMax) &&
    isIntegerIn(0, row.refill_carry_over, 1) &&
    Number.isSafeInteger(row.refilled_through_ms)
  );
}
