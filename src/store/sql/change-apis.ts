import type { CompiledQuery } from "kysely";
import type { ApiFieldChanges, KeyDefaults } from "../../domain/api.ts";
import type { CreateApi, NewEvent, UpdateApi } from "../commands.ts";
import type { Plan, Target } from "./plan.ts";
import { selectApi, storedApiOf } from "./read-apis.ts";
import type { SqlEngine } from "./sql-engine.ts";
import { notTouched, touchRow } from "./touch-row.ts";

/* The changes of APIs. */

export function createApiPlan(engine: SqlEngine, { apiId, name, defaults, event }: CreateApi): Plan {
  return {
    target: ofApi(apiId),
    first: [insertApi(engine, { apiId, name, defaults }, event)],
    rest: [selectApi(engine, apiId).compile()],
    outcomeOf([inserted], [stored]) {
      if (!inserted?.rows.length) return { outcome: "conflict", reason: "apiExists" };
      return { outcome: "done", changed: [], answer: storedApiOf(stored) };
    },
  };
}

export function updateApiPlan(engine: SqlEngine, { apiId, ifVersion, changes, event }: UpdateApi): Plan {
  return {
    target: ofApi(apiId),
    first: [
      touchRow(engine, ofApi(apiId), event, { set: columnsOf(changes), ifVersion }),
      selectApi(engine, apiId).compile(),
    ],
    rest: [],
    outcomeOf([touched, stored]) {
      if (touched?.rows.length) return { outcome: "done", changed: [], answer: storedApiOf(stored) };
      return notTouched(stored);
    },
  };
}

export function ofApi(id: string): Target {
  return { table: "apis", id };
}

/** Creates an API, unless it exists. Answers its id if it did not. */
export function insertApi(
  { db }: SqlEngine,
  { apiId, name, defaults = {} }: { apiId: string; name?: string | undefined; defaults?: KeyDefaults },
  { id: event_id, atMs }: NewEvent,
): CompiledQuery {
  const times = { created_at_ms: atMs, updated_at_ms: atMs };
  const values = { id: apiId, name: name ?? null, defaults: JSON.stringify(defaults), is_deleting: 0 };
  return db
    .insertInto("apis")
    .values({ ...values, ...times, version: 1, event_id })
    .onConflict((conflict) => conflict.column("id").doNothing())
    .returning("id")
    .compile();
}

function columnsOf({ name, defaults }: ApiFieldChanges) {
  return {
    ...(name !== undefined && { name }),
    ...(defaults !== undefined && { defaults: JSON.stringify(defaults) }),
  };
}
