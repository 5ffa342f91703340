import { type RawBuilder, sql } from "kysely";
import { andThen, type MaybePromise } from "../../domain/maybe-promise.ts";
import { newCounter } from "../../domain/usage.ts";
import { type CreateOwner, countedKeysMax, type DeleteOwner, type KeysOfOwner } from "../commands.ts";
import { deleteCounter, holderOf, insertCounter } from "./change-counters.ts";
import { changePlan, firstApi, newRow, targetOf } from "./change-resources.ts";
import type { Row } from "./field-columns.ts";
import { isChangedBy } from "./is-changed-by.ts";
import { deleteWindows, hasStrict, insertWindows, limitRowsOfOwner } from "./limit-windows.ts";
import type { Plan } from "./plan.ts";
import { addChange } from "./sql-change-feed.ts";
import type { SqlEngine } from "./sql-engine.ts";
import { selectResource, storedOf } from "./stored-rows.ts";
import { notTouched, selectVersion } from "./touch-row.ts";

/* How owners are made and deleted. */

export function createOwnerPlan(engine: SqlEngine, { created: owner, event }: CreateOwner): MaybePromise<Plan> {
  const { id, remaining, refill, rateLimits } = owner;
  const target = targetOf("owner", id);
  // By the clock that refills and windows go by, where one of them begins.
  return andThen(refill || hasStrict(rateLimits) ? engine.ledgerNowMs() : event.atMs, (nowMs) => {
    const counter = remaining === undefined ? undefined : newCounter(remaining, refill, nowMs);
    const row: Row = {
      ...newRow("owner", owner, event),
      ...firstApi(owner.apiIds),
      list_id: event.id,
      has_counter: Number(counter !== undefined),
    };
    return {
      target,
      first: [
        engine.db
          .insertInto("owners")
          .values(row as never)
          .onConflict((conflict) => conflict.column("id").doNothing())
          .returning("id")
          .compile(),
      ],
      feed: addChange(engine, "newOwner", id, event),
      rest: [
        ...(counter === undefined ? [] : [insertCounter(engine, holderOf("owner", id), counter, event)]),
        ...insertWindows(engine, limitRowsOfOwner(id, rateLimits), isChangedBy(event, target), {
          ownerId: id,
          madeAtMs: nowMs,
        }),
        selectResource(engine, "owner", id),
      ],
      outcomeOf([inserted], rest) {
        if (!inserted?.rows.length) return { outcome: "conflict", reason: "ownerExists" };
        return andThen(storedOf(engine, "owner", rest.at(-1)), (answer) => {
          return { outcome: "done", changed: [], answer: answer as never };
        });
      },
    };
  });
}

/** The change feed reports the owner and not its keys: there may be any number of them. */
export function deleteOwnerPlan(engine: SqlEngine, command: DeleteOwner): Plan {
  const { db } = engine;
  const { id, ifVersion, unless, event } = command;
  const target = targetOf("owner", id);
  const named = unless && keysNaming(id, unless);
  const windows = sql`SELECT subject FROM permit_windows WHERE owner_id = ${id} AND ${isChangedBy(event, target)}`;
  const plan = changePlan(engine, command, {
    only: named && sql<boolean>`NOT EXISTS (SELECT 1 ${named})`,
    rest: [
      deleteCounter(engine, holderOf("owner", id), event),
      deleteWindows(engine, windows),
      db.deleteFrom("owners").where("id", "=", id).where("event_id", "=", event.id).compile(),
    ],
  });
  if (named === undefined) return plan;
  const count = sql`SELECT COUNT(*) AS count FROM (SELECT 1 ${named} LIMIT ${countedLimit}) AS named`.compile(db);
  return {
    ...plan,
    first: [...plan.first, selectVersion(engine, target), count],
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

const countedLimit = sql.lit(countedKeysMax + 1);

function keysNaming(ownerId: string, { apiIds, enabled }: KeysOfOwner): RawBuilder<unknown> {
  const ofApis = apiIds === undefined ? sql`` : sql`AND api_id IN (${sql.join(apiIds)})`;
  return sql`FROM keys WHERE owner_id = ${ownerId} ${ofApis} ${enabled ? sql`AND enabled = 1` : sql``}`;
}
