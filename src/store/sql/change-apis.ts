import { type CompiledQuery, sql } from "kysely";
import type { NewApi } from "../../domain/api.ts";
import { apiFields } from "../../domain/resources.ts";
import type { CreateApi, NewEvent } from "../commands.ts";
import { newRow, targetOf } from "./change-resources.ts";
import { columnsIn, typedRow, valuesIn } from "./field-columns.ts";
import type { Plan } from "./plan.ts";
import type { SqlEngine } from "./sql-engine.ts";
import { selectResource, storedOf } from "./stored-rows.ts";

export function createApiPlan(engine: SqlEngine, { created, event }: CreateApi): Plan {
  return {
    target: targetOf("api", created.id),
    first: [insertApi(engine, created, event)],
    rest: [selectResource(engine, "api", created.id)],
    outcomeOf([inserted], [stored]) {
      if (!inserted?.rows.length) return { outcome: "conflict", reason: "apiExists" };
      return { outcome: "done", changed: [], answer: storedOf(engine, "api", stored) as never };
    },
  };
}

/**
 * Creates an API, unless it exists. Answers its id if it did not. It looks first: an INSERT with a conflict waits for every
 * change of the row that is under way, such as the deletion of the API's keys, and answers 503 if that takes too long.
 */
export function insertApi(
  { db }: SqlEngine,
  api: Partial<NewApi> & Pick<NewApi, "id">,
  event: NewEvent,
): CompiledQuery {
  const row = typedRow(apiFields, { ...newRow("api", api, event), is_deleting: 0 });
  return sql`INSERT INTO apis (${columnsIn(row)}) SELECT ${valuesIn(row)}
    WHERE NOT EXISTS (SELECT 1 FROM apis WHERE id = ${api.id})
    ON CONFLICT (id) DO NOTHING RETURNING id`.compile(db);
}
