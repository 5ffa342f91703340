import type { CompiledQuery } from "kysely";
import type { ApiFieldChanges, KeyDefaults } from "../../domain/api.ts";
import type { CreateApi, NewEvent, UpdateApi } from "../commands.ts";
import type { Plan, Target } from "./plan.ts";
import { selectApi, storedApiOf } from "./read-apis.ts";
import type { SqlEngine } from "./sql-engine.ts";
import { text, whole } from "./sql-values.ts";
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

/**
 * Creates an API, unless it exists. Answers its id if it did not. It looks first: an INSERT with a conflict waits for every
 * change of the row that is under way, such as the deletion of the API's keys, and answers 503 if that takes too long.
 */
export function insertApi(
  { db }: SqlEngine,
  { apiId, name, defaults = {} }: { apiId: string; name?: string | undefined; defaults?: KeyDefaults },
  { id: event_id, atMs }: NewEvent,
): CompiledQuery {
  return db
    .insertInto("apis")
    .columns(["id", "name", "defaults", "is_deleting", "created_at_ms", "updated_at_ms", "version", "event_id"])
    .expression(
      db
        .selectNoFrom([
          text(apiId).as("id"),
          text(name).as("name"),
          text(JSON.stringify(defaults)).as("defaults"),
          whole(0).as("is_deleting"),
          whole(atMs).as("created_at_ms"),
          whole(atMs).as("updated_at_ms"),
          whole(1).as("version"),
          text(event_id).as("event_id"),
        ])
        .where(({ not, exists, selectFrom }) => not(exists(selectFrom("apis").select("id").where("id", "=", apiId)))),
    )
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
