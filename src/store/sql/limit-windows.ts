import { type CompiledQuery, type RawBuilder, sql } from "kysely";
import type { KeyFieldChanges, NewKey } from "../../domain/key.ts";
import { limitOfKey } from "../../domain/subject.ts";
import type { NewEvent } from "../commands.ts";
import { isChangedBy } from "./is-changed-by.ts";
import type { SqlEngine } from "./sql-engine.ts";
import { text, whole } from "./sql-values.ts";

/*
 * The windows of the strict limits of keys: one row for each limit, with its rule. A row stays when its limit is removed or
 * becomes local, and gets the rule back with the limit: its open window ends when it would have ended.
 */

type Limited = Pick<NewKey, "id" | "rateLimit" | "rateLimits">;

/** One limit of a key, as a row of a table. */
interface LimitRow {
  readonly keyId: string;
  readonly subject: string;
  readonly isStrict: boolean;
  readonly limit: number;
  readonly durationMs: number;
}

/** Makes the windows of these keys that are not there. `isStored`: in SQL, whether the key with the id `key_id` was stored. */
export function insertWindows(
  { db }: SqlEngine,
  keys: readonly Limited[],
  isStored: RawBuilder<boolean>,
): CompiledQuery[] {
  const strict = keys.flatMap(limitsOf).filter(({ isStrict }) => isStrict);
  if (strict.length === 0) return [];
  const neverOpened = sql.join(windowColumns.map(() => sql`0`));
  return [
    sql`WITH ${given(strict)}
      INSERT INTO permit_windows (subject, rule_limit, rule_duration_ms, ${sql.join(windowColumns.map((name) => sql.ref(name)))})
      SELECT subject, rule_limit, rule_duration_ms, ${neverOpened} FROM given WHERE ${isStored} ORDER BY subject
      ON CONFLICT (subject) DO NOTHING`.compile(db),
  ];
}

/** Brings the windows of a key in line with its limits. */
export function setWindowRules(
  engine: SqlEngine,
  keyId: string,
  { rateLimit, rateLimits }: KeyFieldChanges,
  event: NewEvent,
): CompiledQuery[] {
  if (rateLimit === undefined && rateLimits === undefined) return [];
  const key = { id: keyId, rateLimit: rateLimit ?? undefined, rateLimits: rateLimits ?? undefined };
  const isChanged = isChangedBy(event, keyId);
  const ofChanged = [
    ...(rateLimit === undefined ? [] : [sql`subject = ${keyId}`]),
    ...(rateLimits === undefined ? [] : [sql`(subject > ${`${keyId}/`} AND subject < ${`${keyId}0`})`]),
  ];
  // All rows are locked in the order in which the ledger locks them.
  const locked = sql`SELECT subject FROM permit_windows WHERE (${sql.join(ofChanged, sql` OR `)}) AND ${isChanged}
    ORDER BY subject ${engine.forUpdate}`;
  const ruleOf = (column: string) =>
    sql`(SELECT given.${sql.ref(column)} FROM given WHERE given.subject = permit_windows.subject)`;
  return [
    sql`WITH ${given(limitsOf(key))}, locked AS MATERIALIZED (${locked})
      UPDATE permit_windows SET rule_limit = ${ruleOf("rule_limit")}, rule_duration_ms = ${ruleOf("rule_duration_ms")}
      WHERE ${engine.isAnyOf("subject", sql`SELECT subject FROM locked`)}`.compile(engine.db),
    ...insertWindows(engine, [key], isChanged),
  ];
}

/** Deletes the windows of the keys that a SELECT of their ids finds, also those of limits that they had once. */
export function deleteWindows(engine: SqlEngine, ids: RawBuilder<unknown>): CompiledQuery {
  const { db, forUpdate } = engine;
  const locked = sql`SELECT subject FROM permit_windows WHERE ${engine.isAnyOf("subject", sql`SELECT subject FROM found`)}
    ORDER BY subject ${forUpdate}`;
  return sql`WITH found AS MATERIALIZED (${engine.windowsOfKeys(ids)}), locked AS MATERIALIZED (${locked})
    DELETE FROM permit_windows WHERE ${engine.isAnyOf("subject", sql`SELECT subject FROM locked`)}`.compile(db);
}

/**
 * In SQL: whether a window is one of the key with this `id`. After the id comes `/` and a name; the next character is `0`.
 * The first two conditions are one range of the index.
 */
export const isWindowOfKey = sql<boolean>`subject >= id AND subject < id || '0' AND (subject = id OR subject > id || '/')`;

function limitsOf({ id: keyId, rateLimit, rateLimits = [] }: Limited): LimitRow[] {
  const named = rateLimits.map(({ name, rule }) => ({ subject: limitOfKey(keyId, name), rule }));
  const all = rateLimit === undefined ? named : [{ subject: keyId, rule: rateLimit }, ...named];
  return all.map(({ subject, rule: { mode, limit, durationMs } }) => {
    return { keyId, subject, isStrict: mode === "strict", limit, durationMs };
  });
}

/** The limits as a table for a WITH clause. VALUES: engines bound the number of SELECTs that a UNION can have. */
function given(rows: readonly LimitRow[]): RawBuilder<unknown> {
  const values = rows.map(({ keyId, subject, limit, durationMs }) => {
    return sql`(${text(keyId)}, ${text(subject)}, ${whole(limit)}, ${whole(durationMs)})`;
  });
  const none = sql`SELECT ${text(null)}, ${text(null)}, ${whole(null)}, ${whole(null)} WHERE 1 = 0`;
  return sql`given (key_id, subject, rule_limit, rule_duration_ms) AS
    (${values.length === 0 ? none : sql`VALUES ${sql.join(values)}`})`;
}

/** All 0 in a window that was never opened. */
const windowColumns = [
  "gen",
  "ends_at_ms",
  "window_duration_ms",
  "clamped_ends_at_ms",
  "granted",
  "spent",
  "contended",
] as const;
