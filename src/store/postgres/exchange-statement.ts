import { type Sql, sql } from "../sql/sql.ts";
import { databaseNowMs, type GuardedSteps, ledgerNowMs } from "./guarded-statement.ts";

/*
 * Settles many subjects' asks for permits, each exactly as `exchangePermits` does. There are two statements, which differ
 * in what is waited for: costs of 1 only, which is quicker, or any costs.
 *
 * The windows are locked in the order of their subjects, so that no two statements wait for each other in a circle; the clock
 * is read after that. Limit and duration stand in the window's own row, because READ COMMITTED reads the newest version
 * only of rows that a statement locks: joined from `keys`, they would be those of the moment at which the statement began
 * to wait, and a limit lowered meanwhile would be overrun. (Locking `keys` too would cost a write to it for each ask.)
 *
 * If the true end is further away than the duration that the window was opened with, the clock is behind. Then a clamped
 * end counts, which is stored beside the true one (0: none). `ending` is materialized because the end is used in many
 * places: computing it in each of them makes the statement slower by half.
 *
 * Subjects that have no window or no rate limit drop out. An asker may claim to return any number: `granted` stays between
 * `spent` and its old value.
 *
 * $5 subjects  $6 window of the next two  $7 returned  $8 spent  $9 holders
 */
interface Granting {
  /** The parameters of each ask after those above, and their types. They are carried through all steps. */
  readonly columns: Readonly<Record<string, `$${number}::${string}[]`>>;
  /** Whether requests wait that a new window can serve. */
  readonly isDemand: string;
  /** In SQL, of an ask `u` and a window `p`: the limit and the duration in force. */
  readonly rule: { readonly limit: string; readonly durationMs: string };
  /** Steps from `offered` to `granting`, which adds `granted`. */
  readonly steps: string;
}

/** $10 wanted for requests that wait  $11 wanted in all */
export const exchangeSteps = stepsWith({
  columns: { want_min: "$10::bigint[]", want_max: "$11::bigint[]" },
  isDemand: "want_min > 0",
  rule: { limit: "p.rule_limit", durationMs: "p.rule_duration_ms" },
  steps: `granting AS (
  SELECT *, LEAST(available, GREATEST(0, want_min,
    CASE WHEN was_contended OR is_behind THEN 0 ELSE LEAST(want_max, available / GREATEST(2, share)) END)) AS granted
  FROM offered
)`,
});

/**
 * In each step of `folded` every ask advances by one run: as many of its requests are served as can have their whole cost.
 *
 * $10 wanted in advance  $11 smallest cost  $12 first run  $13 last run  $14 costs of all runs  $15 their counts
 * $16 limit that the ask brings, or null  $17 its duration
 */
export const exchangeRunsSteps: GuardedSteps = {
  isRecursive: true,
  ...stepsWith({
    columns: {
      in_advance: "$10::bigint[]",
      smallest: "$11::bigint[]",
      first_run: "$12::int[]",
      last_run: "$13::int[]",
      ask_limit: "$16::bigint[]",
      ask_duration_ms: "$17::bigint[]",
    },
    isDemand: "smallest <= rate_limit",
    rule: {
      limit: "COALESCE(u.ask_limit, p.rule_limit)",
      durationMs: "COALESCE(u.ask_duration_ms, p.rule_duration_ms)",
    },
    steps: `folded (subject, run, last_run, left_over, is_each_served) AS (
  SELECT subject, first_run, last_run, available, true FROM offered
  UNION ALL
  SELECT subject, run + 1, last_run, left_over - served * cost, is_each_served AND served = count
  FROM folded
  CROSS JOIN LATERAL (SELECT ($14::bigint[])[run] AS cost, ($15::bigint[])[run] AS count OFFSET 0) AS r
  CROSS JOIN LATERAL (SELECT LEAST(count, left_over / cost) AS served OFFSET 0) AS s
  WHERE run <= last_run
), waited AS (
  SELECT subject, left_over, is_each_served FROM folded WHERE run > last_run
), granting AS (
  SELECT o.*, CASE WHEN is_each_served AND NOT was_contended AND NOT is_behind
    THEN GREATEST(available - left_over, LEAST(available - left_over + in_advance, available / GREATEST(2, share)))
    ELSE available - left_over END AS granted
  FROM offered o JOIN waited USING (subject)
)`,
  }),
};

function stepsWith({ columns, isDemand, rule, steps }: Granting): GuardedSteps {
  const own = Object.keys(columns).join(", ");
  return {
    table: "permit_windows",
    row: `subject, gen, granted, available - granted, outstanding, ends_in_ms, end_ms, opened_for_ms, is_behind, is_contended,
    rate_limit`,
    steps: (orSkip) => `
locked AS MATERIALIZED (
  SELECT u.*, p.gen, p.ends_at_ms, p.granted, p.spent, p.contended,
    p.window_duration_ms AS opened_for_ms, p.clamped_ends_at_ms AS clamped_before,
    ${rule.limit} AS rate_limit, ${rule.durationMs} AS duration_ms
  FROM unnest($5::text[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[], ${Object.values(columns).join(", ")})
    AS u (subject, ask_gen, ask_returned, ask_spent, holders, ${own})
  JOIN permit_windows p ON p.subject = u.subject
  WHERE EXISTS (SELECT FROM w)
  ORDER BY p.subject
  FOR UPDATE OF p ${orSkip}
), timed AS MATERIALIZED (
  SELECT *, ${ledgerNowMs} AS now_ms FROM locked
), clamped AS (
  SELECT *, CASE WHEN ends_at_ms - now_ms <= opened_for_ms THEN 0
                 WHEN clamped_before <> 0 AND clamped_before - now_ms <= opened_for_ms THEN clamped_before
                 ELSE now_ms + opened_for_ms END AS clamped_ms
  FROM timed WHERE rate_limit IS NOT NULL
), ending AS MATERIALIZED (
  SELECT *, CASE WHEN clamped_ms = 0 THEN ends_at_ms ELSE clamped_ms END AS end_ms FROM clamped
), judged AS (
  SELECT *,
    now_ms >= end_ms AND ${isDemand} AS opens,
    now_ms < end_ms AND ask_gen = gen AS is_own,
    2 * GREATEST(0, holders) AS share
  FROM ending
), reported AS (
  SELECT *, CASE WHEN is_own THEN LEAST(granted, spent + GREATEST(0, ask_spent)) ELSE spent END AS now_spent FROM judged
), credited AS (
  SELECT subject, ${own}, share, now_ms, rate_limit, opens,
    granted AS granted_before, spent AS spent_before, contended AS contended_before, clamped_before,
    gen + opens::int AS gen,
    CASE WHEN opens THEN now_ms + duration_ms ELSE ends_at_ms END AS ends_at_ms,
    CASE WHEN opens THEN now_ms + duration_ms ELSE end_ms END AS end_ms,
    CASE WHEN opens THEN duration_ms ELSE opened_for_ms END AS opened_for_ms,
    CASE WHEN opens THEN 0 ELSE clamped_ms END AS clamped_ms,
    CASE WHEN opens THEN 0
         WHEN is_own THEN granted - LEAST(GREATEST(0, granted - now_spent), GREATEST(0, ask_returned))
         ELSE granted END AS held,
    CASE WHEN opens THEN 0 ELSE now_spent END AS spent,
    NOT opens AND contended = 1 AS was_contended
  FROM reported
), offered AS (
  SELECT *, GREATEST(0, end_ms - now_ms) AS ends_in_ms, clamped_ms <> 0 AND now_ms < end_ms AS is_behind,
    CASE WHEN now_ms < end_ms THEN GREATEST(0, rate_limit - held) ELSE 0 END AS available
  FROM credited
), ${steps}, settled AS MATERIALIZED (
  SELECT *,
    CASE WHEN ends_in_ms > 0 THEN held + granted - spent ELSE 0 END AS outstanding,
    was_contended OR (ends_in_ms > 0 AND available - granted < share) AS now_contended,
    ends_in_ms > 0 AND (was_contended OR is_behind OR available - granted < share) AS is_contended
  FROM granting
), changed AS (
  UPDATE permit_windows p SET gen = s.gen, ends_at_ms = s.ends_at_ms, window_duration_ms = s.opened_for_ms,
    clamped_ends_at_ms = s.clamped_ms, granted = s.held + s.granted, spent = s.spent, contended = s.now_contended::int
  FROM settled s
  WHERE p.subject = s.subject AND (s.opens OR s.clamped_ms <> s.clamped_before OR s.spent <> s.spent_before
    OR s.held + s.granted <> s.granted_before OR s.now_contended <> (s.contended_before = 1))
)`,
  };
}

/**
 * Makes windows as `windowMadeAt` does, of subjects that have none. Another process may make the same at the same time.
 * `nowMs`: undefined for the database's clock.
 */
export function makeWindows(nowMs: number | undefined, windows: readonly NewWindow[]): Sql {
  return sql`
    INSERT INTO permit_windows (subject, gen, ends_at_ms, window_duration_ms, clamped_ends_at_ms, granted, spent, contended)
    SELECT subject, now_ms, now_ms, duration_ms, 0, 0, 0, 0
    FROM jsonb_to_recordset(${JSON.stringify(windows)}::jsonb) AS u (subject text, duration_ms bigint),
      (SELECT COALESCE(${nowMs}::bigint, ${sql.raw(databaseNowMs)}) AS now_ms) AS clock
    ORDER BY subject
    ON CONFLICT DO NOTHING`;
}

interface NewWindow {
  readonly subject: string;
  readonly duration_ms: number | undefined;
}
