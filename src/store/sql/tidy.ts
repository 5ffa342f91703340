import { endedSecretKeptMs } from "../../domain/expiry.ts";
import { earliestId } from "../../domain/id.ts";
import type { ReadingBounds, TidyBounds } from "../store.ts";
import { type Sql, sql, whole } from "./sql.ts";
import { changesReadMax } from "./sql-change-feed.ts";
import type { SqlEngine } from "./sql-engine.ts";

/** Rows that are removed in one transaction: a large one would hold up others. */
const tidyStep = 500;
/** Windows that are looked at in one transaction. */
const windowsStep = 1000;
const dayMs = 86_400_000;

/** Removes what no engine needs any longer: see `Store.tidy`. */
export async function tidyTables(
  engine: SqlEngine,
  nowMs: number,
  { eventsBeforeMs, readings }: TidyBounds = {},
): Promise<void> {
  await engine.atomically([sql`DELETE FROM idempotency WHERE expires_at_ms <= ${nowMs}`]);
  // Caches need not learn of secrets that have ended: they know the end.
  const endedBy = nowMs - endedSecretKeptMs;
  await deleteInSteps(engine, "ending_secrets", "digest", sql`expires_at_ms <= ${endedBy} ORDER BY expires_at_ms`);
  await tidyChanges(engine);
  await tidyWindows(engine, nowMs);
  if (eventsBeforeMs !== undefined) await tidyEvents(engine, eventsBeforeMs);
  if (readings !== undefined) await tidyReadings(engine, readings);
}

/** Subjects whose readings are looked at in one transaction. */
const subjectsStep = 500;

/**
 * Before the first bound only the first reading of each day is kept, and before the second none. The last reading of a
 * subject stays in any case, as long as days do: its counter may be gone. Subjects are walked: an index by hours
 * would have to be written with every reading.
 */
export async function tidyReadings(engine: SqlEngine, { hoursBeforeMs, daysBeforeMs }: ReadingBounds): Promise<void> {
  const firstHour = wholeDayHour(hoursBeforeMs);
  // Where hours are kept, days are too.
  const firstDayHour = Math.min(firstHour, wholeDayHour(daysBeforeMs));
  for (let after = ""; ; ) {
    const rows = await engine.scan(sql`WITH RECURSIVE walked (subject, step) AS (
        SELECT min(subject), 1 FROM readings WHERE subject > ${after}
        UNION ALL
        SELECT (SELECT min(readings.subject) FROM readings WHERE readings.subject > walked.subject), step + 1
        FROM walked WHERE step < ${sql.lit(subjectsStep)} AND walked.subject IS NOT NULL)
      SELECT subject FROM walked WHERE subject IS NOT NULL ORDER BY step`);
    const last = (rows.at(-1) as { readonly subject: string } | undefined)?.subject;
    if (last === undefined) return;
    const beside = (which: Sql) =>
      sql`EXISTS (SELECT 1 FROM readings AS other WHERE other.subject = readings.subject AND ${which})`;
    const isNeedless = sql`subject > ${after} AND subject <= ${last} AND hour < ${firstHour} AND (
      hour < ${firstDayHour} OR (${beside(sql`other.hour > readings.hour`)}
        AND ${beside(sql`other.hour < readings.hour AND other.hour >= readings.hour - readings.hour % 24`)}))`;
    await engine.atomically([
      sql`INSERT INTO readings_kept (slot, first_hour, first_day_hour)
        SELECT 1, ${whole(firstHour)}, ${whole(firstDayHour)} WHERE EXISTS (SELECT 1 FROM readings WHERE ${isNeedless})
        ON CONFLICT (slot) DO UPDATE SET first_hour = ${later("first_hour")}, first_day_hour = ${later("first_day_hour")}`,
      sql`DELETE FROM readings WHERE ${isNeedless}`,
    ]);
    after = last;
  }
}

/** In SQL: a setting that was raised brings nothing back. */
function later(column: string): Sql {
  const [kept, given] = [sql.ref(`readings_kept.${column}`), sql.ref(`excluded.${column}`)];
  return sql`CASE WHEN ${given} > ${kept} THEN ${given} ELSE ${kept} END`;
}

/** The hour at which the day of that moment begins. */
function wholeDayHour(ms: number): number {
  return Math.floor(ms / dayMs) * 24;
}

/** Removes events of before that moment, oldest first. */
export function tidyEvents(engine: SqlEngine, beforeMs: number): Promise<void> {
  return deleteInSteps(engine, "events", "id", sql`id < ${earliestId("evt", beforeMs)} ORDER BY id`);
}

/** `which`: the condition, and the order. */
async function deleteInSteps(engine: SqlEngine, table: string, key: string, which: Sql): Promise<void> {
  const [from, id] = [sql.ref(table), sql.ref(key)];
  for (;;) {
    const [deleted] = await engine.atomically([
      sql`DELETE FROM ${from} WHERE ${id} IN (SELECT ${id} FROM ${from} WHERE ${which} LIMIT ${sql.lit(tidyStep)})`,
    ]);
    // Fewer also if another process removes them at the same time: then that one goes on.
    if (deleted === undefined || deleted.changes < tidyStep) return;
  }
}

/**
 * Removes all but the newest changes, in small transactions. `tidied_before` moves in the same transaction, and never
 * beyond a transaction that is open: positions cannot pass that one, and would count as too old each time.
 */
export async function tidyChanges(engine: SqlEngine, keptMax = changesReadMax): Promise<void> {
  const idAt = (order: Sql, offset: number) =>
    sql`(SELECT transaction_id FROM changes ORDER BY transaction_id ${order} LIMIT 1 OFFSET ${offset})`;
  for (;;) {
    const [feed] =
      await engine.read<FeedBounds>(sql`SELECT tidied_before, ${idAt(sql`DESC`, keptMax - 1)} AS oldest_kept,
      ${idAt(sql`ASC`, tidyStep - 1)} AS step_end, ${engine.oldestOpenTransaction} AS oldest_open FROM change_feed`);
    const { tidied_before, oldest_kept, step_end, oldest_open } = feed as FeedBounds;
    const bound = Math.min(oldest_kept ?? 0, oldest_open, (step_end ?? oldest_open) + 1);
    if (bound <= tidied_before) return;
    await engine.atomically([
      sql`UPDATE change_feed SET tidied_before = ${bound} WHERE tidied_before < ${bound}`,
      sql`DELETE FROM changes WHERE transaction_id < ${bound}`,
    ]);
  }
}

interface FeedBounds {
  readonly tidied_before: number;
  readonly oldest_kept: number | null;
  readonly step_end: number | null;
  readonly oldest_open: number;
}

/**
 * Removes free-standing windows that have been over for a day. They are walked in the order of their subjects: an index by their
 * ends would have to be written with every new window. What is needed again is made again.
 */
async function tidyWindows(engine: SqlEngine, nowMs: number): Promise<void> {
  for (let after = "f/"; ; ) {
    const rows = await engine.read<{ subject: string }>(sql`SELECT subject FROM permit_windows
      WHERE subject > ${after} AND subject < 'f0' ORDER BY subject LIMIT ${sql.lit(windowsStep)}`);
    const last = rows.at(-1)?.subject;
    if (last === undefined) return;
    await engine.atomically([
      sql`DELETE FROM permit_windows WHERE subject > ${after} AND subject <= ${last} AND ends_at_ms < ${nowMs - dayMs}`,
    ]);
    after = last;
  }
}
