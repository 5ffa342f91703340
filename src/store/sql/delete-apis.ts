import { type RawBuilder, sql } from "kysely";
import { type DeleteApi, type DeleteApiKeys, methodOf } from "../commands.ts";
import { targetOf } from "./change-resources.ts";
import { deleteKeys } from "./delete-keys.ts";
import type { Plan } from "./plan.ts";
import { digests } from "./sql-change-feed.ts";
import type { SqlEngine } from "./sql-engine.ts";
import { text, whole } from "./sql-values.ts";
import { touchRow } from "./touch-row.ts";

/*
 * The deletion of APIs. Locks are taken in one order, so that no two transactions wait for each other in a circle: the API's
 * row, rows of keys, counters, windows, each of several in the order of their keys, as the ledgers take them.
 */

/** Each key has an event and a row of the change feed. */
export function deleteApiKeysPlan(engine: SqlEngine, command: DeleteApiKeys): Plan {
  const { id: apiId, limit, event } = command;
  const { db, forUpdate, thisTransaction } = engine;
  // A key that is stored meanwhile may lie among them, which is why later statements look at more than they need.
  const deleted = sql`id IN (${firstKeys(apiId, 2 * limit)}) AND event_id = ${event.id}`;
  const noted = sql`SELECT ${text(event.id)} || '_' || id, ${whole(event.atMs)}, ${text(methodOf(command))},
    ${text(event.actor)}, id, api_id, '', version FROM keys WHERE ${deleted}`;
  return {
    target: targetOf("api", apiId),
    first: [
      // Deletions of one API take turns. A change of its keys is none of its own: its version stays.
      db
        .updateTable("apis")
        .set({ event_id: event.id })
        .where("id", "=", apiId)
        .where("is_deleting", "=", 1)
        .returning("id")
        .compile(),
      // Materialised, so that it is evaluated once: a plan that evaluates it for each row would skip the rows that it has
      // changed already and find others in their place, beyond the limit.
      sql`WITH first_keys AS MATERIALIZED (${firstKeys(apiId, limit)} ${forUpdate})
        UPDATE keys SET version = version + 1, updated_at_ms = ${event.atMs}, event_id = ${event.id}
        WHERE id IN (SELECT id FROM first_keys)
          AND EXISTS (SELECT 1 FROM apis WHERE id = ${apiId} AND event_id = ${event.id})
        RETURNING id`.compile(db),
    ],
    events: sql`INSERT INTO events (id, at_ms, method, actor, target_id, api_id, fields, version) ${noted}`.compile(db),
    feed: sql`INSERT INTO changes (transaction_id, kind, target_id, digests)
      SELECT ${thisTransaction}, 'key', id, ${digests} FROM keys WHERE ${deleted} RETURNING target_id, digests`.compile(
      db,
    ),
    rest: deleteKeys(engine, deleted),
    outcomeOf([api], _, announced) {
      if (!api?.rows.length) return { outcome: "missing" };
      const rows = (announced?.rows ?? []) as readonly { target_id: string; digests: string }[];
      const changed = rows.map(({ target_id, digests }) => ({ keyId: target_id, digests: digests.split(",") }));
      return { outcome: "done", changed, answer: { deleted: rows.length } };
    },
  };
}

/** It waits for keys that are being stored, and none is stored until its transaction has ended. */
export function deleteApiPlan(engine: SqlEngine, { id: apiId, isStopped, event }: DeleteApi): Plan {
  const { db, forUpdate } = engine;
  const isEmpty = sql<boolean>`NOT EXISTS (SELECT 1 FROM keys WHERE api_id = ${apiId})`;
  const isDeletable = isStopped ? sql<boolean>`is_deleting = 1 AND ${isEmpty}` : isEmpty;
  return {
    target: targetOf("api", apiId),
    first: [
      // In a statement of its own: the next one then sees the keys that this one has waited for.
      sql`SELECT is_deleting FROM apis WHERE id = ${apiId} ${forUpdate}`.compile(db),
      touchRow(engine, targetOf("api", apiId), event, { only: isDeletable }),
    ],
    rest: [db.deleteFrom("apis").where("id", "=", apiId).where("event_id", "=", event.id).compile()],
    outcomeOf([found, touched]) {
      if (touched?.rows.length) return { outcome: "done", changed: [] };
      const api = found?.rows[0] as { is_deleting: number } | undefined;
      if (api === undefined || (isStopped && api.is_deleting === 0)) return { outcome: "missing" };
      return { outcome: "conflict", reason: "hasKeys" };
    },
  };
}

/**
 * The first keys of the API, in the order of their ids. It compares rows of columns and orders by both, so that no other index
 * than the intended one can give that order, whatever an engine believes about its data.
 */
function firstKeys(apiId: string, limit: number): RawBuilder<unknown> {
  return sql`SELECT id FROM keys WHERE (api_id, id) >= (${apiId}, '') AND api_id <= ${apiId}
    ORDER BY api_id, id LIMIT ${sql.lit(limit)}`;
}
