import { andThen, type MaybePromise } from "../../domain/maybe-promise.ts";
import { newCounter } from "../../domain/usage.ts";
import { type ImportedKey, type ImportKeys, methodOf } from "../commands.ts";
import { rowOfCounter } from "./change-counters.ts";
import { insertApi, refusedKey, rowOfKey } from "./change-keys.ts";
import { insertRows } from "./field-columns.ts";
import { insertWindows, limitRowsOfKey } from "./limit-windows.ts";
import type { ChangePlan } from "./plan.ts";
import { type Sql, sql, sqlText, whole } from "./sql.ts";
import type { SqlEngine } from "./sql-engine.ts";

/**
 * A few statements for all keys, however many there are. Keys whose digests exist are left out by the first; the others
 * depend on what it has stored. Keys are stored in the order of their digests, so that two imports of the same keys do not
 * wait for each other in a circle. The row of the feed comes last: it is locked for the COMMIT only.
 */
export function importKeysPlan(engine: SqlEngine, command: ImportKeys): MaybePromise<ChangePlan> {
  const { apiId, keys, event, apiMustExist = false } = command;
  // Begun by the clock that will refill it: by another, the first refill could be doubled or left out.
  const began = keys.some(({ refill }) => refill !== undefined) ? engine.ledgerNowMs() : event.atMs;
  const takesKeys = sql`SELECT id FROM apis WHERE id = ${apiId} AND is_deleting = 0`;
  const stored = sql`SELECT id FROM keys WHERE ${areStored(keys)}`;
  return andThen(began, (nowMs) => ({
    target: { table: "apis", id: apiId },
    isMade: sql`is_deleting = 0`,
    // One for each key that was stored.
    events: sql`INSERT INTO events (id, at_ms, method, actor, target_id, api_id, fields, version)
      SELECT event_id, ${whole(event.atMs)}, ${sqlText(methodOf(command))}, ${sqlText(event.actor)},
        id, api_id, '', version FROM keys WHERE ${areStored(keys)}`,
    first: [
      ...(apiMustExist ? [] : [insertApi({ id: apiId }, event)]),
      // Answers it if it takes keys. Then it cannot be deleted while the transaction is open, nor can its deletion overlook a key.
      sql`${takesKeys} ${engine.forKeyShare}`,
      insertRows(
        "keys",
        keys.map((key) => rowOfKey(key, { ...event, id: key.eventId })),
        sql`WHERE NOT EXISTS (SELECT 1 FROM ending_secrets WHERE ending_secrets.digest = given.digest)
          AND EXISTS (${takesKeys}) ORDER BY digest ON CONFLICT DO NOTHING RETURNING id`,
      ),
    ],
    rest: [
      ...insertCounters(keys, nowMs),
      ...insertWindows(keys.flatMap(limitRowsOfKey), sql`holder_id IN (${stored})`),
      sql`UPDATE change_feed SET has_imported_keys = 1 WHERE has_imported_keys = 0 AND EXISTS (${stored})`,
    ],
    outcomeOf(first) {
      const [api, stored] = first.slice(-2);
      if (!api?.rows.length) return refusedKey(engine, apiId, apiMustExist);
      const rows = (stored?.rows ?? []) as readonly { readonly id: string }[];
      return { outcome: "done", changed: [], answer: { keyIds: rows.map(({ id }) => id) } };
    },
  }));
}

function insertCounters(keys: readonly ImportedKey[], nowMs: number): Sql[] {
  const counted = keys.filter(({ remaining }) => remaining !== undefined);
  if (counted.length === 0) return [];
  const rows = counted.map(({ id, remaining = 0, refill, createdAtMs }) =>
    rowOfCounter(id, newCounter(remaining, refill, refill === undefined ? createdAtMs : nowMs)),
  );
  return [insertRows("counters", rows, sql`WHERE subject IN (SELECT id FROM keys WHERE ${areStored(counted)})`)];
}

/** In SQL: whether a row of `keys` is one of these. */
function areStored(keys: readonly ImportedKey[]): Sql {
  const [ids, eventIds] = [sql.join(keys.map(({ id }) => id)), sql.join(keys.map(({ eventId }) => eventId))];
  return sql`id IN (${ids}) AND event_id IN (${eventIds})`;
}
