import { sql } from "kysely";
import type { NewKey } from "../../domain/key.ts";
import { andThen, type MaybePromise } from "../../domain/maybe-promise.ts";
import { keyFields } from "../../domain/resources.ts";
import { newCounter } from "../../domain/usage.ts";
import type { CreateKey, DeleteKey, NewEvent } from "../commands.ts";
import type { Outcome } from "../management.ts";
import { insertApi } from "./change-apis.ts";
import { holderOf, insertCounter } from "./change-counters.ts";
import { changePlan, newRow, targetOf } from "./change-resources.ts";
import { compileOnce } from "./compile-once.ts";
import { deleteKeys } from "./delete-keys.ts";
import { columnNames, columnsIn, type Row, typedRow, valuesIn } from "./field-columns.ts";
import { isChangedBy } from "./is-changed-by.ts";
import { insertWindows, limitRowsOfKey } from "./limit-windows.ts";
import type { Plan } from "./plan.ts";
import type { SqlEngine } from "./sql-engine.ts";

/* How keys are made and deleted. */

export function createKeyPlan(engine: SqlEngine, command: CreateKey): MaybePromise<Plan> {
  const { created: key, event, apiMustExist = false } = command;
  // Begun by the clock that will refill it: by another, the first refill could be doubled or left out.
  const began = key.refill === undefined ? key.createdAtMs : engine.ledgerNowMs();
  return andThen(began, (nowMs) => {
    const counter = key.remaining === undefined ? undefined : newCounter(key.remaining, key.refill, nowMs);
    const target = targetOf("key", key.id);
    return {
      target,
      first: [
        ...(apiMustExist ? [] : [insertApi(engine, { id: key.apiId }, event)]),
        insertKey(engine, rowOfKey(key, event) as Parameters<typeof insertKey>[1]),
      ],
      rest: [
        ...(counter === undefined ? [] : [insertCounter(engine, holderOf("key", key.id), counter, event)]),
        ...insertWindows(engine, limitRowsOfKey(key), isChangedBy(event, target)),
      ],
      outcomeOf: (first) =>
        first.at(-1)?.rows.length ? { outcome: "done", changed: [] } : refusedKey(engine, key.apiId, apiMustExist),
    };
  });
}

/** Why an API takes no key. If its first key should have created it, it was deleted at that very moment. */
export async function refusedKey({ db }: SqlEngine, apiId: string, apiMustExist: boolean): Promise<Outcome> {
  const api = await db.selectFrom("apis").select("is_deleting").where("id", "=", apiId).executeTakeFirst();
  if (api === undefined && apiMustExist) return { outcome: "missing" };
  return { outcome: "conflict", reason: "apiIsDeleting" };
}

export function deleteKeyPlan(engine: SqlEngine, command: DeleteKey): Plan {
  const { id, event } = command;
  return changePlan(engine, command, { rest: deleteKeys(engine, sql`id = ${id} AND event_id = ${event.id}`) });
}

const keyRowColumns = [
  ...columnNames(keyFields),
  ...(["id", "digest", "api_id", "start", "event_id", "version", "has_counter"] as const),
  ...(["created_at_ms", "updated_at_ms", "secret_created_at_ms"] as const),
];

export function rowOfKey(key: NewKey, event: NewEvent): Row {
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
const insertKey = compileOnce(keyRowColumns, ({ db, forKeyShare }, values) => {
  const row = typedRow(keyFields, values as Row);
  return sql`INSERT INTO keys (${columnsIn(row)}) SELECT ${valuesIn(row)} FROM apis
    WHERE id = ${values.api_id} AND is_deleting = 0 ${forKeyShare} RETURNING id`.compile(db);
});
