import type { NewApi } from "../../domain/api.ts";
import type { NewKey } from "../../domain/key.ts";
import { andThen, type MaybePromise } from "../../domain/maybe-promise.ts";
import { newCounter } from "../../domain/usage.ts";
import type { CreateKey, DeleteKey, NewEvent, RerollKey } from "../commands.ts";
import type { Outcome } from "../management.ts";
import { holderOf, insertCounter } from "./change-counters.ts";
import { changePlan, newRow, targetOf } from "./change-resources.ts";
import { type ColumnValues, insertRow } from "./field-columns.ts";
import { deleteWindows, insertWindows, limitRowsOfKey } from "./limit-windows.ts";
import { type ChangePlan, isChangedBy } from "./plan.ts";
import { deleteCounters } from "./readings.ts";
import { type Sql, sql, whole } from "./sql.ts";
import type { SqlEngine } from "./sql-engine.ts";

/* How keys are made, get other secrets, and are deleted. */

export function createKeyPlan(engine: SqlEngine, command: CreateKey): MaybePromise<ChangePlan> {
  const { created: key, event, apiMustExist = false } = command;
  // Begun by the clock that will refill it: by another, the first refill could be doubled or left out.
  const began = key.refill === undefined ? key.createdAtMs : engine.ledgerNowMs();
  return andThen(began, (nowMs) => {
    const counter = key.remaining === undefined ? undefined : newCounter(key.remaining, key.refill, nowMs);
    const target = targetOf("key", key.id);
    return {
      target,
      first: [...(apiMustExist ? [] : [insertApi({ id: key.apiId }, event)]), insertKey(engine, key, event)],
      rest: [
        ...(counter === undefined ? [] : [insertCounter(holderOf("key", key.id), counter, event)]),
        ...insertWindows(limitRowsOfKey(key), isChangedBy(event, target)),
      ],
      outcomeOf: (first) =>
        first.at(-1)?.rows.length ? { outcome: "done", changed: [] } : refusedKey(engine, key.apiId, apiMustExist),
    };
  });
}

/** Why an API takes no key. If its first key should have created it, it was deleted at that very moment. */
export async function refusedKey(engine: SqlEngine, apiId: string, apiMustExist: boolean): Promise<Outcome> {
  const found = await engine.read(sql`SELECT is_deleting FROM apis WHERE id = ${apiId}`);
  if (found.length === 0 && apiMustExist) return { outcome: "missing" };
  return { outcome: "conflict", reason: "apiIsDeleting" };
}

/**
 * Creates an API, unless it exists. Answers its id if it did not. It looks first: an INSERT with a conflict waits for every
 * change of the row that is under way, such as the deletion of the API's keys, and answers 503 if that takes too long.
 */
export function insertApi(api: Partial<NewApi> & Pick<NewApi, "id">, event: NewEvent): Sql {
  const ifNone = sql`WHERE NOT EXISTS (SELECT 1 FROM apis WHERE id = ${api.id}) ON CONFLICT (id) DO NOTHING RETURNING id`;
  return insertRow("apis", { ...newRow("api", api, event), is_deleting: 0 }, ifNone);
}

export function rowOfKey(key: NewKey, event: NewEvent): ColumnValues {
  return {
    ...newRow("key", key, event),
    digest: key.secretDigest,
    api_id: key.apiId,
    start: key.start,
    created_at_ms: key.createdAtMs,
    secret_created_at_ms: key.createdAtMs,
    has_counter: Number(key.remaining !== undefined),
  };
}

/**
 * Stores the key, if its API takes keys. Answers its id then. An API cannot be deleted while the transaction is open, nor can
 * its deletion overlook the key.
 */
function insertKey({ forKeyShare }: SqlEngine, key: NewKey, event: NewEvent): Sql {
  const ifTaken = sql`FROM apis WHERE id = ${key.apiId} AND is_deleting = 0 ${forKeyShare} RETURNING id`;
  return insertRow("keys", rowOfKey(key, event), ifTaken);
}

/**
 * The key's row is locked first, as by every change. The row of the feed comes next and names the secret that is replaced,
 * and the one that was replaced before it: it ends here, whether or not the other one lives on.
 */
export function rerollKeyPlan(engine: SqlEngine, command: RerollKey): ChangePlan {
  const { id, secretDigest, start, overlapMs, event } = command;
  const isRerolled = sql`id = ${id} AND event_id = ${event.id}`;
  const keepOldSecret = sql`INSERT INTO ending_secrets (digest, key_id, start, created_at_ms, expires_at_ms)
    SELECT digest, id, start, secret_created_at_ms, ${whole(event.atMs + overlapMs)} FROM keys WHERE ${isRerolled}`;
  return changePlan(engine, command, {
    rest: [
      sql`DELETE FROM ending_secrets WHERE key_id = ${id} AND ${isChangedBy(event, targetOf("key", id))}`,
      ...(overlapMs === 0 ? [] : [keepOldSecret]),
      sql`UPDATE keys SET digest = ${secretDigest}, start = ${start}, secret_created_at_ms = ${event.atMs}
        WHERE ${isRerolled}`,
    ],
  });
}

export function deleteKeyPlan(engine: SqlEngine, command: DeleteKey): ChangePlan {
  const { id, event } = command;
  return changePlan(engine, command, { rest: deleteKeys(engine, sql`id = ${id} AND event_id = ${event.id}`) });
}

/**
 * Deletes the keys that meet a condition, with their counters and windows; their secrets go with them, by their foreign keys.
 * Rows of each table are locked in the order in which the ledgers lock them. The condition holds of stored keys only: an id
 * that a caller has made up could be the subject of something else.
 */
export function deleteKeys(engine: SqlEngine, deleted: Sql): Sql[] {
  const ids = sql`SELECT id FROM keys WHERE ${deleted}`;
  return [
    ...deleteCounters(engine, "keys", sql`subject IN (${ids})`),
    deleteWindows(engine, engine.windowsOfKeys(ids)),
    sql`DELETE FROM keys WHERE ${deleted}`,
  ];
}
