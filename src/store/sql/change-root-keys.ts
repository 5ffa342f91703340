import type { RootKeyFieldChanges, StoredRootKey } from "../../domain/root-key.ts";
import type { Command, CreateRootKey, RevokeRootKey, UpdateRootKey } from "../commands.ts";
import type { Outcome } from "../management.ts";
import type { RootKeyPage, RootKeysQuery } from "../queries.ts";
import { behindAllIds } from "./pages.ts";
import type { Plan, Rows, Target } from "./plan.ts";
import type { Schema } from "./schema.ts";
import { addRootKeysChange } from "./sql-change-feed.ts";
import type { SqlEngine } from "./sql-engine.ts";
import { notTouched, selectVersion, touchRow } from "./touch-row.ts";

/* The changes of root keys, and how they are read. */

export function createRootKeyPlan({ db }: SqlEngine, { rootKey, event }: CreateRootKey): Plan {
  const { id, digest, start, name, permissions, apiIds, expiresAtMs, createdAtMs } = rootKey;
  const values = {
    id,
    digest,
    start,
    ...columnsOf({ name: name ?? null, permissions, apiIds: apiIds ?? null, expiresAtMs: expiresAtMs ?? null }),
    permissions: JSON.stringify(permissions),
    created_at_ms: createdAtMs,
    updated_at_ms: createdAtMs,
    version: 1,
    event_id: event.id,
  };
  return {
    target: ofRootKey(id),
    first: [db.insertInto("root_keys").values(values).compile()],
    rest: [],
    outcomeOf: () => ({ outcome: "done", changed: [] }),
  };
}

export function updateRootKeyPlan(engine: SqlEngine, command: UpdateRootKey): Plan {
  const { rootKeyId, ifVersion, changes, event } = command;
  return {
    target: ofRootKey(rootKeyId),
    first: [
      touchRow(engine, ofRootKey(rootKeyId), event, { set: columnsOf(changes), ifVersion }),
      selectVersion(engine, ofRootKey(rootKeyId)),
    ],
    feed: addRootKeysChange(engine, rootKeyId, event),
    rest: [engine.db.selectFrom("root_keys").select(columns).where("id", "=", rootKeyId).compile()],
    outcomeOf([touched, found], [read]) {
      const outcome = outcomeOf(touched, found);
      return outcome.outcome === "done" ? { ...outcome, answer: toStoredRootKey(read?.rows[0] as Row) } : outcome;
    },
  };
}

export function revokeRootKeyPlan(engine: SqlEngine, { rootKeyId, ifVersion, event }: RevokeRootKey): Plan {
  return {
    target: ofRootKey(rootKeyId),
    first: [touchRow(engine, ofRootKey(rootKeyId), event, { ifVersion }), selectVersion(engine, ofRootKey(rootKeyId))],
    feed: addRootKeysChange(engine, rootKeyId, event),
    rest: [engine.db.deleteFrom("root_keys").where("id", "=", rootKeyId).where("event_id", "=", event.id).compile()],
    outcomeOf: ([touched, found]) => outcomeOf(touched, found),
  };
}

function ofRootKey(id: string): Target {
  return { table: "root_keys", id };
}

function outcomeOf(touched: Rows | undefined, found: Rows | undefined): Outcome<Command["kind"]> {
  if (touched?.rows.length) return { outcome: "done", changed: [] };
  return notTouched(found);
}

function columnsOf({ name, permissions, apiIds, expiresAtMs }: RootKeyFieldChanges) {
  return {
    ...(name !== undefined && { name }),
    ...(permissions !== undefined && { permissions: JSON.stringify(permissions) }),
    ...(apiIds !== undefined && { api_ids: apiIds && JSON.stringify(apiIds) }),
    ...(expiresAtMs !== undefined && { expires_at_ms: expiresAtMs }),
  };
}

const columns = [
  "id",
  "start",
  "name",
  "permissions",
  "api_ids",
  "expires_at_ms",
  "created_at_ms",
  "updated_at_ms",
  "version",
] as const;

type Row = Pick<Schema["root_keys"], (typeof columns)[number]>;

export async function readRootKey({ db }: SqlEngine, rootKeyId: string): Promise<StoredRootKey | undefined> {
  const row = await db.selectFrom("root_keys").select(columns).where("id", "=", rootKeyId).executeTakeFirst();
  return row && toStoredRootKey(row);
}

/** There are few root keys: a page is read along their primary key. */
export async function listRootKeys({ db }: SqlEngine, { limit, after }: RootKeysQuery): Promise<RootKeyPage> {
  const rows = await db
    .selectFrom("root_keys")
    .select(columns)
    .where("id", "<", after ?? behindAllIds)
    .orderBy("id", "desc")
    .limit(limit + 1)
    .execute();
  const rootKeys = rows.slice(0, limit).map(toStoredRootKey);
  return rows.length > limit ? { rootKeys, cursor: (rootKeys.at(-1) as StoredRootKey).id } : { rootKeys };
}

function toStoredRootKey(row: Row): StoredRootKey {
  return {
    id: row.id,
    start: row.start,
    name: row.name ?? undefined,
    ...allowanceOf(row),
    createdAtMs: row.created_at_ms,
    updatedAtMs: row.updated_at_ms,
    version: row.version,
  };
}

/** What a root key allows, out of its row. */
export function allowanceOf(row: Pick<Row, "permissions" | "api_ids" | "expires_at_ms">) {
  return {
    permissions: JSON.parse(row.permissions) as string[],
    apiIds: row.api_ids === null ? undefined : (JSON.parse(row.api_ids) as string[]),
    expiresAtMs: row.expires_at_ms ?? undefined,
  };
}
