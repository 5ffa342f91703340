import { type DeleteApiKeys, type EndOwnerKeys, fieldsOf, isDisabling, methodOf, resourceOf } from "../commands.ts";
import { deleteKeys } from "./change-keys.ts";
import { targetOf } from "./change-resources.ts";
import type { Group } from "./pages.ts";
import { type ChangePlan, notTouched } from "./plan.ts";
import { and, type Sql, sql, sqlText, whole } from "./sql.ts";
import { digests } from "./sql-change-feed.ts";
import type { SqlEngine } from "./sql-engine.ts";

/**
 * How keys of an API or owner that is deleted are ended, piece by piece. Each key that changes has an event and a row of the
 * change feed.
 *
 * Locks are taken in one order, so that no two transactions wait for each other in a circle: the row of the API or owner, rows
 * of keys, counters, windows, each of several in the order of their keys, as the ledgers take them.
 */
export function endKeysPlan(engine: SqlEngine, command: DeleteApiKeys | EndOwnerKeys): ChangePlan {
  const { id, ifVersion, after = "", limit, event } = command;
  const target = targetOf(resourceOf(command), id);
  const table = sql.ref(target.table);
  const { isMeant, group } = endedBy(command);
  const disables = isDisabling(command);
  const keys = (columns: Sql, end: Sql) => keysBehind(engine, group, after, columns, end);
  // A key that joins them meanwhile may lie among them, which is why later statements look at more than they need.
  const changed = sql`${engine.isAnyOf("id", keys(sql`id`, sql`LIMIT ${sql.lit(2 * limit)}`))} AND event_id = ${event.id}`;
  const version = ifVersion === undefined ? sql`` : sql`AND version = ${ifVersion}`;
  return {
    target,
    first: [
      // It is not deleted until the end. Its row stays as it is: a change of its keys is none of its own.
      sql`SELECT version FROM ${table} WHERE id = ${id} AND ${isMeant} ${engine.forKeyShare}`,
      // Materialised, so that it is evaluated once: a plan that evaluates it for each row would skip the rows that it has
      // changed already and find others in their place, beyond the limit. It waits for other pieces of the same keys. One that
      // was deleted or given to another owner meanwhile is not among them.
      ...engine.inTurn(sql`WITH first_keys AS MATERIALIZED (
          ${keys(sql`id, enabled`, sql`LIMIT ${sql.lit(limit)} ${engine.forUpdate}`)})
        UPDATE keys SET ${disables ? sql`enabled = 0, ` : sql``}
          version = version + 1, updated_at_ms = ${event.atMs}, event_id = ${event.id}
        WHERE ${engine.isAnyOf("id", sql`SELECT id FROM first_keys${disables ? sql` WHERE enabled = 1` : sql``}`)}
          AND EXISTS (SELECT 1 FROM ${table} WHERE id = ${id} AND ${isMeant} ${version})
        RETURNING id`),
      // The last one of these, or one before it if another key has joined them: none is locked by then that it leaves out.
      keys(sql`id`, sql`LIMIT 1 OFFSET ${sql.lit(limit - 1)}`),
    ],
    isMade: isMeant,
    events: sql`INSERT INTO events (id, at_ms, method, actor, target_id, api_id, fields, version)
      SELECT ${sqlText(event.id)} || '_' || id, ${whole(event.atMs)}, ${sqlText(methodOf(command))},
        ${sqlText(event.actor)}, id, api_id, ${sqlText(fieldsOf(command).join())}, version FROM keys WHERE ${changed}`,
    feed: sql`INSERT INTO changes (transaction_id, kind, target_id, digests)
      SELECT ${engine.thisTransaction}, 'key', id, ${digests} FROM keys WHERE ${changed} RETURNING target_id, digests`,
    rest: disables ? [] : deleteKeys(engine, changed),
    outcomeOf(first, _, announced) {
      const row = first[0]?.rows[0] as { readonly version: number } | undefined;
      if (row === undefined || (ifVersion ?? row.version) !== row.version) return notTouched(first[0]);
      const rows = (announced?.rows ?? []) as readonly { target_id: string; digests: string }[];
      const changed = rows.map(({ target_id, digests }) => ({ keyId: target_id, digests: digests.split(",") }));
      const [end] = (first.at(-1)?.rows ?? []) as readonly { id: string }[];
      return { outcome: "done", changed, answer: { cursor: end?.id } };
    },
  };
}

/** Whose keys these are, if the row with its id is the one that is meant. */
function endedBy(command: DeleteApiKeys | EndOwnerKeys): { readonly isMeant: Sql; readonly group: Group } {
  const { id } = command;
  if (command.kind === "deleteApiKeys")
    return { isMeant: sql`is_deleting = 1`, group: [{ column: "api_id", value: id }] };
  const { madeAtMs, apiId } = command;
  const ofApi = apiId === undefined ? [] : [{ column: "api_id", value: apiId }];
  return { isMeant: sql`created_at_ms = ${madeAtMs}`, group: [{ column: "owner_id", value: id }, ...ofApi] };
}

/**
 * Keys of the group behind an id, in the order of their ids. It compares rows of columns and orders by all of them, so that no
 * other index than the intended one can give that order, whatever an engine believes about its data: `pages.ts` says more.
 */
function keysBehind(engine: SqlEngine, group: Group, after: string, columns: Sql, end: Sql): Sql {
  const order = sql.join([...group.map(({ column }) => sql.ref(column)), sql`id`]);
  const range = group.map(({ column, value }, i) =>
    i < group.length - 1
      ? engine.hasValue(column, value)
      : sql`(${sql.ref(column)}, id) > (${value}, ${after}) AND ${sql.ref(column)} <= ${value}`,
  );
  return sql`SELECT ${columns} FROM keys WHERE ${and(range)} ORDER BY ${order} ${end}`;
}
