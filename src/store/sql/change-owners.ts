import { andThen, type MaybePromise } from "../../domain/maybe-promise.ts";
import { newCounter } from "../../domain/usage.ts";
import { type CreateOwner, countedKeysMax, type DeleteOwner, type KeysOfOwner } from "../commands.ts";
import { holderOf, insertCounter } from "./change-counters.ts";
import { changePlan, createdOutcome, firstApi, newRow, targetOf } from "./change-resources.ts";
import { insertRow } from "./field-columns.ts";
import { deleteWindows, hasStrict, insertWindows, limitRowsOfOwner } from "./limit-windows.ts";
import { type ChangePlan, deleteRow, isChangedBy, notTouched, selectVersion } from "./plan.ts";
import { continueReadings, deleteCounter, endReadings } from "./readings.ts";
import { type Sql, sql } from "./sql.ts";
import { addChange } from "./sql-change-feed.ts";
import type { SqlEngine } from "./sql-engine.ts";
import { selectResource } from "./stored-rows.ts";

/* How owners are made and deleted. */

export function createOwnerPlan(engine: SqlEngine, { created: owner, event }: CreateOwner): MaybePromise<ChangePlan> {
  const { id, remaining, refill, rateLimits } = owner;
  const holder = holderOf("owner", id);
  const { target } = holder;
  // By the clock that refills and windows go by, where one of them begins.
  return andThen(refill || hasStrict(rateLimits) ? engine.ledgerNowMs() : event.atMs, (nowMs) => {
    const counter = remaining === undefined ? undefined : newCounter(remaining, refill, nowMs);
    const row = {
      ...newRow("owner", owner, event),
      ...firstApi(owner.apiIds),
      list_id: event.id,
      has_counter: Number(counter !== undefined),
    };
    return {
      target,
      first: [insertRow("owners", row, sql`WHERE 1 = 1 ON CONFLICT (id) DO NOTHING RETURNING id`)],
      feed: addChange(engine, "newOwner", id, event),
      rest: [
        endReadings(holder, event),
        ...(counter === undefined
          ? []
          : [insertCounter(holder, counter, event), ...continueReadings(engine, holder, event)]),
        ...insertWindows(limitRowsOfOwner(id, rateLimits), isChangedBy(event, target), {
          ownerId: id,
          madeAtMs: nowMs,
        }),
        selectResource("owner", id),
      ],
      outcomeOf: createdOutcome(engine, "owner", "ownerExists"),
    };
  });
}

/** The change feed reports the owner and not its keys: there may be any number of them. */
export function deleteOwnerPlan(engine: SqlEngine, command: DeleteOwner): ChangePlan {
  const { id, ifVersion, unless, event } = command;
  const target = targetOf("owner", id);
  const named = unless && keysNaming(id, unless);
  const windows = sql`SELECT subject FROM permit_windows WHERE owner_id = ${id} AND ${isChangedBy(event, target)}`;
  const plan = changePlan(engine, command, {
    only: named && sql`NOT EXISTS (SELECT 1 ${named})`,
    rest: [
      ...deleteCounter(engine, holderOf("owner", id), event),
      deleteWindows(engine, windows),
      deleteRow(target, event),
    ],
  });
  if (named === undefined) return plan;
  const count = sql`SELECT COUNT(*) AS count FROM (SELECT 1 ${named} LIMIT ${sql.lit(countedKeysMax + 1)}) AS named`;
  return {
    ...plan,
    first: [...plan.first, selectVersion(target), count],
    outcomeOf(first, rest, announced) {
      const [found, counted] = first.slice(-2);
      const row = found?.rows[0] as { version: number } | undefined;
      const isOther = row === undefined || (ifVersion ?? row.version) !== row.version;
      if (first[0]?.rows.length) return plan.outcomeOf(first, rest, announced);
      if (isOther) return notTouched(found);
      const [{ count } = { count: 0 }] = (counted?.rows ?? []) as { count: number | string }[];
      return { outcome: "conflict", reason: "ownerHasKeys", keys: Number(count) };
    },
  };
}

function keysNaming(ownerId: string, { apiIds, enabled }: KeysOfOwner): Sql {
  const ofApis = apiIds === undefined ? sql`` : sql`AND api_id IN (${sql.join(apiIds)})`;
  return sql`FROM keys WHERE owner_id = ${ownerId} ${ofApis} ${enabled ? sql`AND enabled = 1` : sql``}`;
}
