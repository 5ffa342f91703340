import type { DatabaseSync, SQLInputValue } from "node:sqlite";
import { refilled, type UsageCounter } from "../../domain/usage.ts";
import { type CounterRow, counterOf } from "../sql/counter-row.ts";

/** The parameters of the functions, in order. */
export const counterColumns = [
  "remaining",
  "refill_interval",
  "refill_amount",
  "refill_carry_over",
  "refilled_through_ms",
] as const satisfies readonly (keyof CounterRow)[];

/** Gives the connection the refill that is due, as SQL functions of a counter's columns. They throw on a damaged counter. */
export function registerRefills(db: DatabaseSync, nowMs: () => number): void {
  const register = (name: string, resultOf: (counter: UsageCounter) => number | null) =>
    db.function(name, { varargs: true }, (...values: SQLInputValue[]) => {
      const row = Object.fromEntries(counterColumns.map((column, i) => [column, values[i]]));
      return resultOf(refilled(counterOf(row as unknown as CounterRow), nowMs()));
    });
  register("refilled_remaining", ({ remaining }) => remaining);
  register("refilled_through", ({ refill }) => refill?.refilledThroughMs ?? null);
}
