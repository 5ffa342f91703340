import { type CompiledQuery, type RawBuilder, sql } from "kysely";
import { andThen, type MaybePromise } from "../../domain/maybe-promise.ts";
import type { NewOwner, OwnerFieldChanges } from "../../domain/owner.ts";
import { newCounter } from "../../domain/usage.ts";
import {
  type CreateOwner,
  countedKeysMax,
  type DeleteOwner,
  type KeysOfOwner,
  type NewEvent,
  type UpdateOwner,
} from "../commands.ts";
import { deleteCounter, insertCounter, needsCounter, ownerWithCounter, setRefill } from "./change-counters.ts";
import { listColumn, rateLimitsColumn } from "./change-keys.ts";
import { isChangedBy } from "./is-changed-by.ts";
import { deleteWindows, insertWindows, limitRowsOfOwner, setOwnerWindows } from "./limit-windows.ts";
import type { Plan, Target } from "./plan.ts";
import { selectStoredOwner, storedOwnerOf } from "./read-owners.ts";
import { addOwnerChange } from "./sql-change-feed.ts";
import type { SqlEngine } from "./sql-engine.ts";
import { notTouched, selectVersion, touchRow } from "./touch-row.ts";

/* The changes of owners. */

export function createOwnerPlan(engine: SqlEngine, { owner, event }: CreateOwner): MaybePromise<Plan> {
  const { id, remaining, refill, rateLimits } = owner;
  return andThen(clockFor(engine, owner, event.atMs), (nowMs) => {
    const counter = remaining === undefined ? undefined : newCounter(remaining, refill, nowMs);
    const isStored = isChangedBy(event, ofOwner(id));
    return {
      target: ofOwner(id),
      first: [insertOwner(engine, owner, event)],
      feed: addOwnerChange(engine, "newOwner", id, event),
      rest: [
        ...(counter === undefined ? [] : [insertCounter(engine, ownerWithCounter(id), counter, event).compile()]),
        ...insertWindows(engine, limitRowsOfOwner(id, rateLimits), isStored, { ownerId: id, madeAtMs: nowMs }),
        selectStoredOwner(engine, { id }),
      ],
      outcomeOf([inserted], rest) {
        if (!inserted?.rows.length) return { outcome: "conflict", reason: "ownerExists" };
        return andThen(storedOwnerOf(engine, rest.at(-1)), (answer) => ({ outcome: "done", changed: [], answer }));
      },
    };
  });
}

export function updateOwnerPlan(engine: SqlEngine, command: Omit<UpdateOwner, "kind">): MaybePromise<Plan> {
  const { ownerId, ifVersion, changes, event } = command;
  const { refill, rateLimits } = changes;
  return andThen(clockFor(engine, changes, event.atMs), (nowMs) => ({
    target: ofOwner(ownerId),
    first: [touchRow(engine, ofOwner(ownerId), event, { set: changedColumns(changes), ifVersion })],
    feed: addOwnerChange(engine, "owner", ownerId, event),
    rest: [
      ...setOwnerWindows(engine, { ownerId, madeAtMs: nowMs }, rateLimits, event),
      ...(refill === undefined ? [] : [setRefill(engine, ownerWithCounter(ownerId), refill, nowMs, event)]),
      selectStoredOwner(engine, { id: ownerId }),
    ],
    outcomeOf([touched], rest) {
      if (!touched?.rows.length) return notTouched(rest.at(-1));
      return andThen(storedOwnerOf(engine, rest.at(-1)), (answer) => ({ outcome: "done", changed: [], answer }));
    },
  }));
}

/** The change feed reports the owner and not its keys: there may be any number of them. */
export function deleteOwnerPlan(engine: SqlEngine, { ownerId, ifVersion, unless, event }: DeleteOwner): Plan {
  const { db } = engine;
  const target = ofOwner(ownerId);
  const named = unless && keysNaming(ownerId, unless);
  const only = named && sql<boolean>`NOT EXISTS (SELECT 1 ${named})`;
  const windows = sql`SELECT subject FROM permit_windows WHERE owner_id = ${ownerId} AND ${isChangedBy(event, target)}`;
  return {
    target,
    first: [
      touchRow(engine, target, event, { ifVersion, ...(only && { only }) }),
      selectVersion(engine, target),
      ...(named
        ? [sql`SELECT COUNT(*) AS count FROM (SELECT 1 ${named} LIMIT ${countedLimit}) AS named`.compile(db)]
        : []),
    ],
    feed: addOwnerChange(engine, "owner", ownerId, event),
    rest: [
      deleteCounter(engine, ownerWithCounter(ownerId), event),
      deleteWindows(engine, windows),
      db.deleteFrom("owners").where("id", "=", ownerId).where("event_id", "=", event.id).compile(),
    ],
    outcomeOf([touched, found, counted]) {
      if (touched?.rows.length) return { outcome: "done", changed: [] };
      const [row] = (found?.rows ?? []) as { version: number }[];
      const [{ count } = { count: 0 }] = (counted?.rows ?? []) as { count: number | string }[];
      if (row === undefined || (ifVersion ?? row.version) !== row.version) return notTouched(found);
      return { outcome: "conflict", reason: "ownerHasKeys", keys: Number(count) };
    },
  };
}

const countedLimit = sql.lit(countedKeysMax + 1);

function keysNaming(ownerId: string, { apiIds, enabled }: KeysOfOwner): RawBuilder<unknown> {
  const ofApis = apiIds === undefined ? sql`` : sql`AND api_id IN (${sql.join(apiIds)})`;
  return sql`FROM keys WHERE owner_id = ${ownerId} ${ofApis} ${enabled ? sql`AND enabled = 1` : sql``}`;
}

function ofOwner(id: string): Target {
  return { table: "owners", id };
}

/** The clock that refills and windows go by, where one of them begins with it. */
function clockFor(
  engine: SqlEngine,
  { refill, rateLimits }: Pick<OwnerFieldChanges, "refill" | "rateLimits">,
  otherwiseMs: number,
): MaybePromise<number> {
  return refill || rateLimits?.some(({ rule }) => rule.mode === "strict") ? engine.ledgerNowMs() : otherwiseMs;
}

/** Answers the id, unless there is a record of this owner. */
function insertOwner({ db }: SqlEngine, owner: NewOwner, { id: event_id, atMs }: NewEvent): CompiledQuery {
  const { id, enabled, apiIds, meta, rateLimits, remaining } = owner;
  return db
    .insertInto("owners")
    .values({
      id,
      list_id: event_id,
      meta: JSON.stringify(meta),
      enabled: Number(enabled),
      ...apiColumns(apiIds),
      ratelimits: rateLimitsColumn(rateLimits),
      has_counter: Number(remaining !== undefined),
      created_at_ms: atMs,
      updated_at_ms: atMs,
      version: 1,
      event_id,
    })
    .onConflict((conflict) => conflict.column("id").doNothing())
    .returning("id")
    .compile();
}

function changedColumns({ meta, enabled, apiIds, rateLimits, refill }: OwnerFieldChanges) {
  return {
    ...(meta !== undefined && { meta: JSON.stringify(meta) }),
    ...(enabled !== undefined && { enabled: Number(enabled) }),
    ...(apiIds !== undefined && apiColumns(apiIds)),
    ...(rateLimits !== undefined && { ratelimits: rateLimitsColumn(rateLimits) }),
    ...(refill && { has_counter: needsCounter }),
  };
}

function apiColumns(apiIds: readonly string[] | null | undefined) {
  return { api_ids: listColumn(apiIds), first_api_id: apiIds?.toSorted()[0] ?? null };
}
