import { type GuardedSteps, ledgerNowMs } from "./guarded-statement.ts";
import { refillSteps } from "./refill-steps.ts";

/*
 * Settles many subjects' charges. The counters are locked in the order of their subjects, so that no two statements wait for
 * each other in a circle. The clock is read after the locks are held. Missing subjects drop out of the join.
 *
 * $5 subjects  $6 uses wanted
 */
export const settleSteps: GuardedSteps = {
  table: "counters",
  row: "subject, granted, after, ahead_ms",
  steps: (orSkip) => `
locked AS MATERIALIZED (
  SELECT k.*, u.wanted
  FROM unnest($5::text[], $6::int[]) AS u (subject, wanted) JOIN counters k ON k.subject = u.subject
  WHERE EXISTS (SELECT FROM w)
  ORDER BY k.subject
  FOR UPDATE OF k ${orSkip}
), timed AS MATERIALIZED (
  SELECT *, ${ledgerNowMs} AS now_ms FROM locked
), ${refillSteps}, settled AS MATERIALIZED (
  SELECT subject, boundaries, through_ms, GREATEST(0, through_ms - now_ms) AS ahead_ms, LEAST(available, wanted) AS granted, available - LEAST(available, wanted) AS after
  FROM refilled
), spent AS (
  UPDATE counters k SET remaining = s.after, refilled_through_ms = s.through_ms
  FROM settled s WHERE k.subject = s.subject AND (s.granted > 0 OR s.boundaries > 0)
)`,
};
