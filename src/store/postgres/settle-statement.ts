import { type GuardedSteps, ledgerNowMs } from "./guarded-statement.ts";

/*
 * Settles many keys' charges. The counters are locked in the order of their keys, so that no two statements wait for
 * each other in a circle. The clock is read after the locks are held. Missing keys drop out of the join.
 *
 * $5 key ids  $6 uses wanted
 */
export const settleSteps: GuardedSteps = {
  table: "key_usage",
  row: "key_id, granted, after, ahead_ms",
  steps: (orSkip) => `
locked AS MATERIALIZED (
  SELECT k.*, u.wanted
  FROM unnest($5::text[], $6::int[]) AS u (key_id, wanted) JOIN key_usage k ON k.key_id = u.key_id
  WHERE EXISTS (SELECT FROM w)
  ORDER BY k.key_id
  FOR UPDATE OF k ${orSkip}
), timed AS MATERIALIZED (
  SELECT *, ${ledgerNowMs} AS now_ms FROM locked
), dated AS (
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
         END AS through_ms
  FROM passed
), settled AS MATERIALIZED (
  SELECT key_id, boundaries, through_ms, GREATEST(0, through_ms - now_ms) AS ahead_ms, LEAST(available, wanted) AS granted, available - LEAST(available, wanted) AS after
  FROM refilled
), spent AS (
  UPDATE key_usage k SET remaining = s.after, refilled_through_ms = s.through_ms
  FROM settled s WHERE k.key_id = s.key_id AND (s.granted > 0 OR s.boundaries > 0)
)`,
};
