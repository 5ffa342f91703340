import { type RawBuilder, sql } from "kysely";
import { counterColumns } from "./register-refills.ts";

/** `SqlEngine.refilledCounter`, by the functions of `registerRefills`. There is one writer, so the row is its own. */
export function refilledCounter(subject: string): RawBuilder<unknown> {
  const columns = sql.raw(counterColumns.join(", "));
  return sql`refilled AS MATERIALIZED (
    SELECT subject, refilled_remaining(${columns}) AS available, refilled_through(${columns}) AS through_ms
    FROM counters WHERE subject = ${subject}
  )`;
}
