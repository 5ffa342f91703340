import { expect } from "vitest";
import type { UpdateRemaining } from "../../src/store/commands.ts";
import type { Outcome } from "../../src/store/management.ts";
import type { ChargeResult } from "../../src/store/usage-ledger.ts";

/** One answered step of a counter. A `set` may follow any balance. */
export interface BalanceStep {
  readonly before: number | undefined;
  readonly after: number;
}

export function stepOfCharge(result: ChargeResult): BalanceStep {
  if (result.outcome !== "settled") throw new Error(`the charge came to "${result.outcome}"`);
  return { before: result.remaining + result.granted, after: result.remaining };
}

/** Undefined if the update was refused. */
export function stepOfUpdate(
  { op, value = 0 }: Pick<UpdateRemaining, "op" | "value">,
  outcome: Outcome<"updateRemaining">,
): BalanceStep | undefined {
  if (outcome.outcome === "conflict") return undefined;
  const after = outcome.outcome === "done" ? outcome.answer?.remaining : undefined;
  if (after === undefined) throw new Error(`the update came to "${outcome.outcome}"`);
  return { before: op === "set" ? undefined : op === "increment" ? after - value : after + value, after };
}

/**
 * Whether there can be an order of these steps, one at a time, that leads to the last balance: each is left as often as it is
 * reached, except that the last one, and each that a `set` replaces, is not left.
 */
export function expectExplained(first: number, steps: readonly BalanceStep[], last: number): void {
  const reached = new Map<number, number>([[first, 1]]);
  const add = (balance: number, by: number) => reached.set(balance, (reached.get(balance) ?? 0) + by);
  for (const { before, after } of steps) {
    add(after, 1);
    if (before !== undefined) add(before, -1);
  }
  expect([...reached].filter(([, times]) => times < 0)).toEqual([]);
  expect(reached.get(last) ?? 0, `times that the last balance, ${last}, was reached and not left`).toBeGreaterThan(0);
}
