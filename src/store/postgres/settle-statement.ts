import { type GuardedSteps, ledgerNowMs } from "./guarded-statement.ts";
import { refillSteps } from "./refill-steps.ts";

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
), ${refillSteps}, settled AS MATERIALIZED (
  SELECT key_id, boundaries, through_ms, GREATEST(0, through_ms - now_ms) AS ahead_ms, LEAST(available, wanted) AS granted, available - LEAST(available, wanted) AS after
  FROM refilled
), spent AS (
  UPDATE key_usage k SET remaining = s.after, refilled_through_ms = s.through_ms
  FROM settled s WHERE k.key_id = s.key_id AND (s.granted > 0 OR s.boundaries > 0)
)`,
};
