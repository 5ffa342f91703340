import type { KeyFieldChanges, NewKey } from "../../domain/key.ts";
import type { NamedRateLimit } from "../../domain/limits.ts";
import type { RateLimit } from "../../domain/rate-limit.ts";
import { limitOfKey, limitOfOwner } from "../../domain/subject.ts";
import type { UpdateKey, UpdateOwner } from "../commands.ts";
import { isChangedBy } from "./plan.ts";
import { type Sql, sql, sqlText, whole } from "./sql.ts";
import type { SqlEngine } from "./sql-engine.ts";

/*
 * The windows of the strict limits of keys and owners: one row for each limit, with its rule. A row stays when its limit is
 * removed or becomes local, and gets the rule back with the limit: its open window ends when it would have ended.
 */

/** One limit, as a row of a table. */
export interface LimitRow {
  /** The id of the key or owner that has the limit. */
  readonly holderId: string;
  readonly subject: string;
  readonly isStrict: boolean;
  readonly limit: number;
  readonly durationMs: number;
}

/**
 * Whose windows are made, if not those of keys. An owner's id can be used again after its deletion, that of a key cannot: the
 * windows of an owner are made as `windowMadeAt` does, so that what belongs to a window of before never fits a new one.
 */
interface OwnerOfWindows {
  readonly ownerId: string;
  /** Now, by the ledger's clock. */
  readonly madeAtMs: number;
}

export function limitRowsOfKey(key: Pick<NewKey, "id" | "rateLimit" | "rateLimits">): LimitRow[] {
  const { id, rateLimit, rateLimits = [] } = key;
  const named = rateLimits.map(({ name, rule }) => toRow(id, limitOfKey(id, name), rule));
  return rateLimit === undefined ? named : [toRow(id, id, rateLimit), ...named];
}

export function limitRowsOfOwner(id: string, rateLimits: readonly NamedRateLimit[] = []): LimitRow[] {
  return rateLimits.map(({ name, rule }) => toRow(id, limitOfOwner(id, name), rule));
}

/** Whether one of the limits is strict. */
export function hasStrict(rateLimits: readonly NamedRateLimit[] | null | undefined): boolean {
  return rateLimits?.some(({ rule }) => rule.mode === "strict") ?? false;
}

function toRow(holderId: string, subject: string, { mode, limit, durationMs }: RateLimit): LimitRow {
  return { holderId, subject, isStrict: mode === "strict", limit, durationMs };
}

/** Makes the windows of these limits that are not there. `isStored`: in SQL, whether what has the id `holder_id` was stored. */
export function insertWindows(limits: readonly LimitRow[], isStored: Sql, owner?: OwnerOfWindows): Sql[] {
  const strict = limits.filter(({ isStrict }) => isStrict);
  if (strict.length === 0) return [];
  const madeAtMs = whole(owner?.madeAtMs ?? 0);
  const durationMs = owner === undefined ? sql`0` : sql`rule_duration_ms`;
  return [
    sql`WITH ${given(strict)}
      INSERT INTO permit_windows (subject, owner_id, rule_limit, rule_duration_ms,
        gen, ends_at_ms, window_duration_ms, clamped_ends_at_ms, granted, spent, contended)
      SELECT subject, ${sqlText(owner?.ownerId)}, rule_limit, rule_duration_ms,
        ${madeAtMs}, ${madeAtMs}, ${durationMs}, 0, 0, 0, 0 FROM given WHERE ${isStored} ORDER BY subject
      ON CONFLICT (subject) DO NOTHING`,
  ];
}

/** Brings the windows of a key or an owner in line with its limits. `nowMs`: by the ledger's clock. */
export function setWindows(engine: SqlEngine, command: UpdateKey | UpdateOwner, nowMs: number): Sql[] {
  const { id, event } = command;
  const { rateLimit, rateLimits } = command.changes as KeyFieldChanges;
  if (rateLimit === undefined && rateLimits === undefined) return [];
  if (command.kind === "updateOwner") {
    const isChanged = isChangedBy(event, { table: "owners", id });
    const limits = limitRowsOfOwner(id, rateLimits ?? []);
    return [
      setRules(engine, limits, sql`owner_id = ${id} AND ${isChanged}`),
      ...insertWindows(limits, isChanged, { ownerId: id, madeAtMs: nowMs }),
    ];
  }
  const ofChanged = [
    ...(rateLimit === undefined ? [] : [sql`subject = ${id}`]),
    ...(rateLimits === undefined ? [] : [sql`(subject > ${`${id}/`} AND subject < ${`${id}0`})`]),
  ];
  const isChanged = isChangedBy(event, { table: "keys", id });
  const limits = limitRowsOfKey({ id, rateLimit: rateLimit ?? undefined, rateLimits: rateLimits ?? undefined });
  return [
    setRules(engine, limits, sql`(${sql.join(ofChanged, " OR ")}) AND ${isChanged}`),
    ...insertWindows(limits, isChanged),
  ];
}

/** Gives each window that meets the condition the rule of its limit, or none. */
function setRules(engine: SqlEngine, limits: readonly LimitRow[], condition: Sql): Sql {
  // All rows are locked in the order in which the ledger locks them.
  const locked = sql`SELECT subject FROM permit_windows WHERE ${condition} ORDER BY subject ${engine.forUpdate}`;
  const ruleOf = (column: string) =>
    sql`(SELECT given.${sql.ref(column)} FROM given WHERE given.subject = permit_windows.subject)`;
  return sql`WITH ${given(limits)}, locked AS MATERIALIZED (${locked})
    UPDATE permit_windows SET rule_limit = ${ruleOf("rule_limit")}, rule_duration_ms = ${ruleOf("rule_duration_ms")}
    WHERE ${engine.isAnyOf("subject", sql`SELECT subject FROM locked`)}`;
}

/** Deletes the windows whose subjects a SELECT finds. */
export function deleteWindows(engine: SqlEngine, subjects: Sql): Sql {
  const locked = sql`SELECT subject FROM permit_windows WHERE ${engine.isAnyOf("subject", sql`SELECT subject FROM found`)}
    ORDER BY subject ${engine.forUpdate}`;
  return sql`WITH found AS MATERIALIZED (${subjects}), locked AS MATERIALIZED (${locked})
    DELETE FROM permit_windows WHERE ${engine.isAnyOf("subject", sql`SELECT subject FROM locked`)}`;
}

/**
 * In SQL: whether a window is one of the key with this `id`, also of a limit that it had once. After the id comes `/` and a
 * name; the next character is `0`. The first two conditions are one range of the index.
 */
export const isWindowOfKey = sql`subject >= id AND subject < id || '0' AND (subject = id OR subject > id || '/')`;

/** The limits as a table for a WITH clause. VALUES: engines bound the number of SELECTs that a UNION can have. */
function given(rows: readonly LimitRow[]): Sql {
  const values = rows.map(({ holderId, subject, limit, durationMs }) => {
    return sql`(${sqlText(holderId)}, ${sqlText(subject)}, ${whole(limit)}, ${whole(durationMs)})`;
  });
  const none = sql`SELECT ${sqlText(null)}, ${sqlText(null)}, ${whole(null)}, ${whole(null)} WHERE 1 = 0`;
  return sql`given (holder_id, subject, rule_limit, rule_duration_ms) AS
    (${values.length === 0 ? none : sql`VALUES ${sql.join(values)}`})`;
}
