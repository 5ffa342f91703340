import { type Sql, sql } from "../sql/sql.ts";

/*
 * The refill that is due, as steps of a WITH clause: the calendar of `domain/refill-calendar.ts` in SQL. They begin with
 * `timed`: rows of `counters` with `now_ms`, read after the rows were locked. They end in `refilled`, which adds to each
 * row: `boundaries` that have passed, the balance `available`, `through_ms`, and `spent`, which a refill does not change.
 */
export const refillSteps = `
dated AS (
  SELECT *,
    to_timestamp(now_ms / 1000.0) AT TIME ZONE 'UTC' AS now_utc,
    to_timestamp(refilled_through_ms / 1000.0) AT TIME ZONE 'UTC' AS through_utc
  FROM timed
), passed AS (
  SELECT *, GREATEST(0, CASE refill_interval
    WHEN 'daily' THEN floor(now_ms / 86400000.0) - floor(refilled_through_ms / 86400000.0)
    WHEN 'monthly' THEN (extract(year FROM now_utc) - extract(year FROM through_utc)) * 12
                        + extract(month FROM now_utc) - extract(month FROM through_utc)
    ELSE 0 END)::bigint AS boundaries
  FROM dated
), refilled AS (
  SELECT *,
    CASE WHEN boundaries = 0 THEN remaining
         WHEN refill_carry_over = 1 THEN LEAST(2147483647, remaining + refill_amount * boundaries)
         ELSE GREATEST(remaining, refill_amount) END AS available,
    CASE WHEN boundaries = 0 THEN refilled_through_ms
         ELSE (extract(epoch FROM date_trunc(CASE refill_interval WHEN 'daily' THEN 'day' ELSE 'month' END, now_utc)) * 1000)::bigint
         END AS through_ms,
    credited - remaining AS spent
  FROM passed
)`.trim();

/** `SqlEngine.refilledCounter`. A statement that waits for the row goes on with its newest version and the time of then. */
export function pgRefilledCounter(subject: string, nowMs: Sql): Sql {
  return sql`locked AS MATERIALIZED (
    SELECT * FROM counters WHERE subject = ${subject} FOR UPDATE
  ), timed AS MATERIALIZED (
    SELECT *, ${nowMs} AS now_ms FROM locked
  ), ${sql.raw(refillSteps)}`;
}
