import { type CompiledQuery, type RawBuilder, sql } from "kysely";
import { andThen, type MaybePromise } from "../../domain/maybe-promise.ts";
import { keyFields } from "../../domain/resources.ts";
import { newCounter } from "../../domain/usage.ts";
import { type ImportedKey, type ImportKeys, methodOf } from "../commands.ts";
import { insertApi } from "./change-apis.ts";
import { counterColumns } from "./change-counters.ts";
import { refusedKey, rowOfKey } from "./change-keys.ts";
import { columnsIn, type TypedRow, typedRow, valuesIn } from "./field-columns.ts";
import { insertWindows, limitRowsOfKey } from "./limit-windows.ts";
import type { Plan } from "./plan.ts";
import type { SqlEngine } from "./sql-engine.ts";
import { text, whole } from "./sql-values.ts";

/**
 * A few statements for all keys, however many there are. Keys whose digests exist are left out by the first; the others
 * depend on what it has stored. Keys are stored in the order of their digests, so that two imports of the same keys do not
 * wait for each other in a circle. The row of the feed comes last: it is locked for the COMMIT only.
 */
export function importKeysPlan(engine: SqlEngine, command: ImportKeys): MaybePromise<Plan> {
  const { apiId, keys, event, apiMustExist = false } = command;
  // Begun by the clock that will refill it: by another, the first refill could be doubled or left out.
  const began = keys.some(({ refill }) => refill !== undefined) ? engine.ledgerNowMs() : event.atMs;
  return andThen(began, (nowMs) => ({
    target: { table: "apis", id: apiId },
    isMade: sql<boolean>`is_deleting = 0`,
    events: addEvents(engine, command),
    first: [
      ...(apiMustExist ? [] : [insertApi(engine, { id: apiId }, event)]),
      lockApi(engine, apiId),
      insertKeys(engine, command),
    ],
    rest: [
      ...insertCounters(engine, keys, nowMs),
      ...insertWindows(
        engine,
        keys.flatMap(limitRowsOfKey),
        sql`holder_id IN (SELECT id FROM keys WHERE ${areStored(keys)})`,
      ),
      sql`UPDATE change_feed SET has_imported_keys = 1
        WHERE has_imported_keys = 0 AND EXISTS (SELECT 1 FROM keys WHERE ${areStored(keys)})`.compile(engine.db),
    ],
    outcomeOf(first) {
      const [api, stored] = first.slice(-2);
      if (!api?.rows.length) return refusedKey(engine, apiId, apiMustExist);
      const rows = (stored?.rows ?? []) as readonly { readonly id: string }[];
      return { outcome: "done", changed: [], answer: { keyIds: rows.map(({ id }) => id) } };
    },
  }));
}

/** Answers it if it takes keys. Then it cannot be deleted while the transaction is open, nor can its deletion overlook a key. */
function lockApi({ db, forKeyShare }: SqlEngine, apiId: string): CompiledQuery {
  return sql`SELECT id FROM apis WHERE id = ${apiId} AND is_deleting = 0 ${forKeyShare}`.compile(db);
}

function takesKeys(apiId: string): RawBuilder<boolean> {
  return sql<boolean>`EXISTS (SELECT 1 FROM apis WHERE id = ${apiId} AND is_deleting = 0)`;
}

function insertKeys({ db }: SqlEngine, { apiId, keys, event }: ImportKeys): CompiledQuery {
  const rows = keys.map((key) => typedRow(keyFields, rowOfKey(key, { ...event, id: key.eventId })));
  const columns = columnsIn(rows[0] ?? []);
  return sql`INSERT INTO keys (${columns}) SELECT ${columns} FROM ${tableOf(rows)}
    WHERE NOT EXISTS (SELECT 1 FROM ending_secrets WHERE ending_secrets.digest = given.digest) AND ${takesKeys(apiId)}
    ORDER BY digest ON CONFLICT DO NOTHING RETURNING id`.compile(db);
}

function insertCounters({ db }: SqlEngine, keys: readonly ImportedKey[], nowMs: number): CompiledQuery[] {
  const counted = keys.filter(({ remaining }) => remaining !== undefined);
  if (counted.length === 0) return [];
  const rows = counted.map(({ id, remaining = 0, refill, createdAtMs }) => {
    return Object.entries(
      counterColumns(id, newCounter(remaining, refill, refill === undefined ? createdAtMs : nowMs)),
    );
  });
  const columns = columnsIn(rows[0] ?? []);
  const stored = sql`subject IN (SELECT id FROM keys WHERE ${areStored(counted)})`;
  return [sql`INSERT INTO counters (${columns}) SELECT ${columns} FROM ${tableOf(rows)} WHERE ${stored}`.compile(db)];
}

/** One for each key that was stored. */
function addEvents({ db }: SqlEngine, command: ImportKeys): CompiledQuery {
  const { keys, event } = command;
  const [at, method, actor] = [whole(event.atMs), text(methodOf(command)), text(event.actor)];
  return sql`INSERT INTO events (id, at_ms, method, actor, target_id, api_id, fields, version)
    SELECT event_id, ${at}, ${method}, ${actor}, id, api_id, '', version FROM keys WHERE ${areStored(keys)}`.compile(
    db,
  );
}

/** In SQL: whether a row of `keys` is one of these. */
function areStored(keys: readonly ImportedKey[]): RawBuilder<boolean> {
  const [ids, eventIds] = [sql.join(keys.map(({ id }) => id)), sql.join(keys.map(({ eventId }) => eventId))];
  return sql<boolean>`id IN (${ids}) AND event_id IN (${eventIds})`;
}

/** The rows as a table with the name `given`. */
function tableOf(rows: readonly TypedRow[]): RawBuilder<unknown> {
  const selects = rows.map((row) => sql`SELECT ${valuesIn(row)}`);
  return sql`(${sql.join(selects, sql` UNION ALL `)}) AS given`;
}
