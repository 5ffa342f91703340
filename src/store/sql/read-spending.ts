import { hourAt, refilled } from "../../domain/usage.ts";
import type { SpendingAnswer, SpendingQuery } from "../queries.ts";
import { holderOf } from "./change-counters.ts";
import { type CounterColumns, counterColumns, readCounter } from "./counter-row.ts";
import { type Sql, sql, sqlText, whole } from "./sql.ts";
import type { SqlEngine } from "./sql-engine.ts";

interface SpendingRow extends CounterColumns {
  readonly id: string;
  readonly hour: number | null;
  readonly spent: number;
  readonly former: number;
}

interface KeptRow {
  readonly first_hour: number;
  readonly first_day_hour: number;
}

/**
 * One statement finds everything, so that all of it is of one moment: each number is a step in the index of readings. The
 * row whose hour is null has what was spent in all. It does the same work for ids that are foreign and that are unknown.
 */
export async function readSpending(engine: SqlEngine, query: SpendingQuery): Promise<SpendingAnswer> {
  const nowMs = await engine.ledgerNowMs();
  const rows = (await engine.scan(selectSpending(engine, query, hourAt(nowMs) + 1))) as readonly SpendingRow[];
  // After the numbers: what is removed in between is refused.
  const [kept] = await engine.read<KeptRow>(sql`SELECT first_hour, first_day_hour FROM readings_kept`);
  const found = Map.groupBy(rows, ({ id }) => id);
  const counters = query.ids.map((id) => {
    const rowsOfIt = found.get(id);
    const [first] = rowsOfIt ?? [];
    if (rowsOfIt === undefined || first === undefined) return undefined;
    const counter = readCounter(first);
    const spentBefore = new Map(rowsOfIt.map(({ hour, spent, former }) => [hour, Math.max(spent, former)]));
    return {
      counter: counter && refilled(counter, nowMs),
      spent: spentBefore.get(null) as number,
      spentBefore: query.hours.map((hour) => spentBefore.get(hour) as number),
    };
  });
  return { nowMs, counters, kept: { firstHour: kept?.first_hour ?? 0, firstDayHour: kept?.first_day_hour ?? 0 } };
}

function selectSpending(engine: SqlEngine, { of, ids, hours, apiIds }: SpendingQuery, lastHour: number): Sql {
  const given = ids.map((id) => sql`(${sqlText(id)}, ${sqlText(subjectOf(of, id))})`);
  const bounds = [null, ...new Set(hours)].map((hour) => sql`(${whole(hour)})`);
  // Later ones were made by a clock that was ahead.
  const first = sql`AND readings.hour >= bounds.hour AND readings.hour <= ${whole(lastHour)} ORDER BY readings.hour`;
  const latest = sql`ORDER BY readings.hour DESC`;
  // Whoever sees all sees it too.
  const former =
    apiIds === undefined
      ? sql.lit(0)
      : sql`COALESCE(found.former_spent, ${reading(sql`readings.former_spent`, latest)}, 0)`;
  const columns = sql.join(counterColumns.map(sql.ref));
  const counters = sql`SELECT * FROM counters WHERE ${engine.isAnyOf("subject", sql`SELECT subject FROM given`)}`;
  return sql`WITH given (id, subject) AS (VALUES ${sql.join(given)}), bounds (hour) AS (VALUES ${sql.join(bounds)}),
    found AS MATERIALIZED (
      SELECT given.id, given.subject, ${columns} FROM given LEFT JOIN (${counters}) AS counters ON counters.subject = given.subject
      ${apiIds === undefined ? sql`` : sql`WHERE ${isVisible(engine, of, apiIds)}`})
    SELECT found.id, bounds.hour, ${columns}, ${former} AS former,
      COALESCE(CASE WHEN bounds.hour IS NOT NULL THEN ${reading(sql`spent`, first)} END, credited - remaining,
        ${reading(sql`spent`, latest)}, 0) AS spent
    FROM found CROSS JOIN bounds`;
}

/** In SQL: a column of the first reading in this order. */
function reading(column: Sql, order: Sql): Sql {
  return sql`(SELECT ${column} FROM readings WHERE readings.subject = found.subject ${order} LIMIT 1)`;
}

/** No id of a key has a slash: such a text could be the subject of an owner's counter. */
function subjectOf(of: SpendingQuery["of"], id: string): string {
  return of === "key" && id.includes("/") ? "" : holderOf(of, id).subject;
}

/** In SQL: whether the key or owner is one of these APIs, or its last reading says that it was. */
function isVisible(engine: SqlEngine, of: SpendingQuery["of"], apiIds: readonly string[]): Sql {
  const last = sql`readings.subject = given.subject
    AND readings.hour = (SELECT max(latest.hour) FROM readings AS latest WHERE latest.subject = given.subject)`;
  if (of === "key") {
    const lastApi = sql`(SELECT api_id FROM readings WHERE ${last})`;
    return sql`COALESCE((SELECT api_id FROM keys WHERE keys.id = given.id), ${lastApi}) IN (${sql.join(apiIds)})`;
  }
  const isOfThem = sql`first_api_id IS NOT NULL AND ${engine.isListOf("api_ids", apiIds)}`;
  return sql`CASE WHEN EXISTS (SELECT 1 FROM owners WHERE owners.id = given.id)
    THEN EXISTS (SELECT 1 FROM owners WHERE owners.id = given.id AND ${isOfThem})
    ELSE EXISTS (SELECT 1 FROM readings WHERE ${last}
      AND api_ids IS NOT NULL AND ${engine.isListOf("api_ids", apiIds)}) END`;
}
