import { hourMs } from "../../domain/usage.ts";
import { type GuardedSteps, ledgerNowMs } from "./guarded-statement.ts";
import { refillSteps } from "./refill-steps.ts";

/*
 * Both statements lock the counters by one SELECT, in the order of their subjects, so that no two statements wait for each
 * other in a circle. (A join that locks a key's counter and its owner's row by row would: k1, o, k2 against k2, o.) The
 * clock is read after the locks are held. Missing subjects drop out of the join.
 */

/** The first steps of both: the counters of these subjects `u`, with every refill that is due. */
function refilledCounters(subjects: string, columns: string, orSkip: string): string {
  return `locked AS MATERIALIZED (
  SELECT k.*, ${columns} FROM ${subjects} JOIN counters k ON k.subject = u.subject
  WHERE EXISTS (SELECT FROM w)
  ORDER BY k.subject
  FOR UPDATE OF k ${orSkip}
), timed AS MATERIALIZED (
  SELECT *, ${ledgerNowMs} AS now_ms FROM locked
), ${refillSteps}`;
}

/** What both carry to `storedCounters`. `isCharged`: in SQL, whether anything is taken. */
function meterColumns(isCharged: string): string {
  return `spent, CASE WHEN ${isCharged} THEN GREATEST(metered_hour, now_ms / ${hourMs}) ELSE metered_hour END AS hour,
    metered_hour AS hour_before`;
}

/** The last steps of both: the counters `which` of `settled`, and a reading of each whose first charge of an hour this is. */
function storedCounters(which: string): string {
  return `charged AS (
  UPDATE counters k SET remaining = s.after, refilled_through_ms = s.through_ms,
    credited = s.available + s.spent, metered_hour = s.hour
  FROM settled s WHERE k.subject = s.subject AND ${which}
), metered AS (
  INSERT INTO readings (subject, hour, spent) SELECT subject, hour, spent FROM settled WHERE hour > hour_before
  ON CONFLICT DO NOTHING
)`;
}

/**
 * Settles charges of cost 1 on one counter each, no counter twice.
 *
 * $5 subjects  $6 uses wanted
 */
export const settleSteps: GuardedSteps = {
  table: "counters",
  row: "subject, granted, after, ahead_ms",
  steps: (orSkip) => `
${refilledCounters("unnest($5::text[], $6::int[]) AS u (subject, wanted)", "u.wanted", orSkip)}, settled AS MATERIALIZED (
  SELECT subject, boundaries, through_ms, GREATEST(0, through_ms - now_ms) AS ahead_ms, LEAST(available, wanted) AS granted,
    available - LEAST(available, wanted) AS after, available, ${meterColumns("LEAST(available, wanted) > 0")}
  FROM refilled
), ${storedCounters("(s.granted > 0 OR s.boundaries > 0)")}`,
};

/**
 * Settles any charges, one after the other, as `settle` of `domain/usage.ts` does: a charge needs its own counter and, if
 * it names one, a shared one, and takes the same from both. Only the balances are stored: whoever has the charges finds
 * what each of them was granted by counting again from the balances before.
 *
 * Counters that charges connect form a part. Parts have no counter in common, so each is counted for itself. Charges of
 * which a counter is missing or locked change nothing, not even by storing a refill that is due. Charges of which a counter
 * is too low from the beginning take nothing (balances only fall): they count with 0 and are no `runs`. A part with enough
 * for all of its runs is done by a sum. Only the others are counted run by run: in each step of `folded` every such part
 * advances by one. `balances` holds a part's balances by slot.
 *
 * $5 subjects  $6 their parts  $7 their slots in the part, from 1
 * $8 own subject of each charge, as a position in $5  $9 shared one, or 0  $10 cost  $11 count
 * Cost times count is bounded by the sender, so that sums stay far below 2^63.
 */
export const settleRunsSteps: GuardedSteps = {
  table: "counters",
  row: "subject, available, after, ahead_ms",
  isRecursive: true,
  steps: (orSkip) => `
${refilledCounters("unnest($5::text[], $6::int[], $7::int[]) WITH ORDINALITY AS u (subject, part, slot, at)", "u.part, u.slot, u.at", orSkip)}, held AS MATERIALIZED (
  SELECT subject, part, slot, at, available, boundaries, through_ms, GREATEST(0, through_ms - now_ms) AS ahead_ms,
    spent, metered_hour, now_ms
  FROM refilled
), complete AS MATERIALIZED (
  SELECT own.part, own.slot AS own_slot, COALESCE(shared.slot, 0) AS shared_slot, r.cost, r.at,
    CASE WHEN r.cost <= LEAST(own.available, shared.available) THEN r.count ELSE 0 END AS count
  FROM unnest($8::int[], $9::int[], $10::bigint[], $11::bigint[]) WITH ORDINALITY AS r (own, shared, cost, count, at)
  JOIN held own ON own.at = r.own
  LEFT JOIN held shared ON shared.at = r.shared
  WHERE r.shared = 0 OR shared.at IS NOT NULL
), runs AS MATERIALIZED (
  SELECT part, own_slot, shared_slot, cost, count, row_number() OVER (PARTITION BY part ORDER BY at) AS step
  FROM complete WHERE count > 0
), wanted AS MATERIALIZED (
  SELECT part, slot, sum(cost * count)::bigint AS wanted
  FROM (SELECT part, own_slot AS slot, cost, count FROM complete
    UNION ALL SELECT part, shared_slot, cost, count FROM complete WHERE shared_slot > 0) AS each
  GROUP BY part, slot
), short AS MATERIALIZED (
  SELECT DISTINCT part FROM held JOIN wanted USING (part, slot) WHERE wanted > available
), folded (part, step, balances) AS (
  SELECT u.part, 1::bigint, array_agg(COALESCE(held.available, 0) ORDER BY u.slot)
  FROM unnest($6::int[], $7::int[]) AS u (part, slot) JOIN short ON short.part = u.part
  LEFT JOIN held ON held.part = u.part AND held.slot = u.slot
  GROUP BY u.part
  UNION ALL
  SELECT f.part, f.step + 1, shared.balances
  FROM folded f JOIN runs r ON r.part = f.part AND r.step = f.step
  CROSS JOIN LATERAL (
    SELECT r.cost * LEAST(r.count, f.balances[r.own_slot] / r.cost,
      CASE WHEN r.shared_slot > 0 THEN f.balances[r.shared_slot] / r.cost END) AS taken
    OFFSET 0
  ) AS each
  CROSS JOIN LATERAL (
    SELECT ${reduced("f.balances", "r.own_slot")} AS balances OFFSET 0
  ) AS own
  CROSS JOIN LATERAL (
    SELECT CASE WHEN r.shared_slot > 0 THEN ${reduced("own.balances", "r.shared_slot")} ELSE own.balances END AS balances
  ) AS shared
), ends AS MATERIALIZED (
  SELECT DISTINCT ON (part) part, balances FROM folded ORDER BY part, step DESC
), balanced AS (
  SELECT held.*, wanted, COALESCE(ends.balances[slot], available - COALESCE(wanted, 0)) AS after
  FROM held LEFT JOIN wanted USING (part, slot) LEFT JOIN ends USING (part)
), settled AS MATERIALIZED (
  SELECT subject, available, boundaries, through_ms, ahead_ms, wanted, after, ${meterColumns("after <> available")}
  FROM balanced
), ${storedCounters("s.wanted IS NOT NULL AND (s.after <> s.available OR s.boundaries > 0)")}`,
};

/** The balances with one of them reduced by what was taken. */
function reduced(balances: string, slot: string): string {
  return `${balances}[:${slot} - 1] || (${balances}[${slot}] - taken) || ${balances}[${slot} + 1:]`;
}
