import { type Command, fieldsOf, methodOf } from "../commands.ts";
import type { ChangeTarget } from "./plan.ts";
import { type Sql, sql, sqlText, whole } from "./sql.ts";

/** To be part of the transaction that makes the change. A change that is not made adds nothing. */
export function addEvent(command: Command, { table, id: targetId }: ChangeTarget): Sql {
  const { id, atMs, actor } = command.event;
  const { apiId, apiIds = sql`NULL` } = concerned[table];
  const fields = sqlText(fieldsOf(command).join());
  return sql`INSERT INTO events (id, at_ms, method, actor, target_id, api_id, api_ids, fields, version)
    SELECT event_id, ${whole(atMs)}, ${sqlText(methodOf(command))}, ${sqlText(actor)}, id, ${apiId}, ${apiIds}, ${fields}, version
    FROM ${sql.ref(table)} WHERE id = ${targetId} AND event_id = ${id}`;
}

/** The API that a change concerns, as a column of its target, and all of them where there can be several. */
const concerned: { readonly [Table in ChangeTarget["table"]]: { readonly apiId: Sql; readonly apiIds?: Sql } } = {
  keys: { apiId: sql`api_id` },
  apis: { apiId: sql`id` },
  owners: { apiId: sql`first_api_id`, apiIds: sql`api_ids` },
  // It concerns the service.
  root_keys: { apiId: sql`NULL` },
};
