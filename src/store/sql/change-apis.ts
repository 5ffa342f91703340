import type { CreateApi, DeleteApi } from "../commands.ts";
import { insertApi } from "./change-keys.ts";
import { createdOutcome, targetOf } from "./change-resources.ts";
import { type ChangePlan, deleteRow, touchRow } from "./plan.ts";
import { sql } from "./sql.ts";
import type { SqlEngine } from "./sql-engine.ts";
import { selectResource } from "./stored-rows.ts";

/* How APIs are made and deleted. */

export function createApiPlan(engine: SqlEngine, { created, event }: CreateApi): ChangePlan {
  return {
    target: targetOf("api", created.id),
    first: [insertApi(created, event)],
    rest: [selectResource("api", created.id)],
    outcomeOf: createdOutcome(engine, "api", "apiExists"),
  };
}

/** It waits for keys that are being stored, and none is stored until its transaction has ended. */
export function deleteApiPlan({ forUpdate }: SqlEngine, { id: apiId, isStopped, event }: DeleteApi): ChangePlan {
  const target = targetOf("api", apiId);
  const isEmpty = sql`NOT EXISTS (SELECT 1 FROM keys WHERE api_id = ${apiId})`;
  return {
    target,
    first: [
      // In a statement of its own: the next one then sees the keys that this one has waited for.
      sql`SELECT is_deleting FROM apis WHERE id = ${apiId} ${forUpdate}`,
      touchRow(target, event, { only: isStopped ? sql`is_deleting = 1 AND ${isEmpty}` : isEmpty }),
    ],
    rest: [deleteRow(target, event)],
    outcomeOf([found, touched]) {
      if (touched?.rows.length) return { outcome: "done", changed: [] };
      const api = found?.rows[0] as { is_deleting: number } | undefined;
      if (api === undefined || (isStopped && api.is_deleting === 0)) return { outcome: "missing" };
      return { outcome: "conflict", reason: "hasKeys" };
    },
  };
}
