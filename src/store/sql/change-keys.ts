import { type CompiledQuery, sql } from "kysely";
import type { KeyFieldChanges, NewKey } from "../../domain/key.ts";
import { type NamedRateLimit, toNamedRateLimit } from "../../domain/limits.ts";
import { andThen, type MaybePromise } from "../../domain/maybe-promise.ts";
import type { RateLimit } from "../../domain/rate-limit.ts";
import { newCounter } from "../../domain/usage.ts";
import type { CreateKey, DeleteKey, NewEvent, UpdateKey } from "../commands.ts";
import type { Outcome } from "../management.ts";
import { insertApi } from "./change-apis.ts";
import { insertCounter, keyWithCounter, needsCounter, setRefill } from "./change-counters.ts";
import { deleteKeys } from "./delete-keys.ts";
import { isChangedBy } from "./is-changed-by.ts";
import { insertWindows, limitRowsOfKey, setKeyWindows } from "./limit-windows.ts";
import type { Plan, Rows, Target } from "./plan.ts";
import { selectStoredKey, storedKeyOf } from "./read-keys.ts";
import { addKeyChange } from "./sql-change-feed.ts";
import type { SqlEngine } from "./sql-engine.ts";
import { text, whole } from "./sql-values.ts";
import { notTouched, selectVersion, touchRow } from "./touch-row.ts";

/* The changes of keys. */

export function createKeyPlan(engine: SqlEngine, command: CreateKey): MaybePromise<Plan> {
  const { key, event, apiMustExist = false } = command;
  // Begun by the clock that will refill it: by another, the first refill could be doubled or left out.
  const began = key.refill === undefined ? key.createdAtMs : engine.ledgerNowMs();
  return andThen(began, (nowMs) => {
    const counter = key.remaining === undefined ? undefined : newCounter(key.remaining, key.refill, nowMs);
    return {
      target: ofKey(key.id),
      first: [
        ...(apiMustExist ? [] : [insertApi(engine, { apiId: key.apiId }, event)]),
        insertKey(engine, key, counter !== undefined, event),
      ],
      rest: [
        ...(counter === undefined ? [] : [insertCounter(engine, keyWithCounter(key.id), counter, event).compile()]),
        ...insertWindows(engine, limitRowsOfKey(key), isChangedBy(event, ofKey(key.id))),
      ],
      outcomeOf: (first) =>
        first.at(-1)?.rows.length ? { outcome: "done", changed: [] } : refusedKey(engine, key.apiId, apiMustExist),
    };
  });
}

/** Why an API takes no key. If its first key should have created it, it was deleted at that very moment. */
export async function refusedKey({ db }: SqlEngine, apiId: string, apiMustExist: boolean): Promise<Outcome> {
  const api = await db.selectFrom("apis").select("is_deleting").where("id", "=", apiId).executeTakeFirst();
  if (api === undefined && apiMustExist) return { outcome: "missing" };
  return { outcome: "conflict", reason: "apiIsDeleting" };
}

export function updateKeyPlan(engine: SqlEngine, command: UpdateKey): MaybePromise<Plan> {
  const { keyId, ifVersion, changes, event } = command;
  const { refill } = changes;
  return andThen(refill ? engine.ledgerNowMs() : 0, (nowMs) => ({
    target: ofKey(keyId),
    first: [touchRow(engine, ofKey(keyId), event, { set: columnsOf(changes), ifVersion })],
    feed: addKeyChange(engine, keyId, event),
    rest: [
      ...setKeyWindows(engine, keyId, changes, event),
      ...(refill === undefined ? [] : [setRefill(engine, keyWithCounter(keyId), refill, nowMs, event)]),
      selectStoredKey.id(engine, { value: keyId }),
    ],
    outcomeOf(_, rest, told) {
      const outcome = changedKey(keyId, told);
      if (outcome.outcome === "missing") return notTouched(rest.at(-1));
      return andThen(storedKeyOf(engine, rest.at(-1)), (answer) => ({ ...outcome, answer }));
    },
  }));
}

export function deleteKeyPlan(engine: SqlEngine, { keyId, ifVersion, event }: DeleteKey): Plan {
  const target = ofKey(keyId);
  return {
    target,
    first: [
      touchRow(engine, target, event, { ifVersion }),
      ...(ifVersion === undefined ? [] : [selectVersion(engine, target)]),
    ],
    feed: addKeyChange(engine, keyId, event),
    rest: deleteKeys(engine, sql`id = ${keyId} AND event_id = ${event.id}`),
    outcomeOf([, found], __, told) {
      const outcome = changedKey(keyId, told);
      return outcome.outcome === "missing" ? notTouched(found) : outcome;
    },
  };
}

export function ofKey(id: string): Target {
  return { table: "keys", id };
}

/** `told` is the answer of `addKeyChange`: the digests of the key, if it was changed. */
export function changedKey(keyId: string, told: Rows | undefined): Outcome {
  const row = told?.rows[0] as { digests: string } | undefined;
  if (row === undefined) return { outcome: "missing" };
  return { outcome: "done", changed: [{ keyId, digests: row.digests.split(",") }] };
}

function columnsOf(changes: KeyFieldChanges) {
  const { ownerId, name, meta, enabled, expiresAtMs, rateLimit, rateLimits, costMax, refill } = changes;
  const { permissions, ipAllow } = changes;
  return {
    ...(ownerId !== undefined && { owner_id: ownerId }),
    ...(name !== undefined && { name }),
    ...(meta !== undefined && { meta: JSON.stringify(meta) }),
    ...(enabled !== undefined && { enabled: Number(enabled) }),
    ...(expiresAtMs !== undefined && { expires_at_ms: expiresAtMs }),
    ...(rateLimit !== undefined && rateLimitColumns(rateLimit ?? undefined)),
    ...(rateLimits !== undefined && { ratelimits: rateLimitsColumn(rateLimits) }),
    ...(costMax !== undefined && { cost_max: costMax }),
    ...(permissions !== undefined && { permissions: listColumn(permissions) }),
    ...(ipAllow !== undefined && { ip_allow: listColumn(ipAllow) }),
    ...(refill && { has_counter: needsCounter }),
  };
}

/**
 * Stores the key, if its API takes keys. Answers its id then. An API cannot be deleted while the transaction is open, nor can
 * its deletion overlook the key.
 */
function insertKey({ db, forKeyShare }: SqlEngine, key: NewKey, hasCounter: boolean, event: NewEvent): CompiledQuery {
  const { ratelimit_async, ratelimit_limit, ratelimit_duration_ms } = rateLimitColumns(key.rateLimit);
  return db
    .insertInto("keys")
    .columns([
      "digest",
      "id",
      "api_id",
      "start",
      "owner_id",
      "name",
      "meta",
      "enabled",
      "expires_at_ms",
      "created_at_ms",
      "updated_at_ms",
      "secret_created_at_ms",
      "version",
      "event_id",
      "ratelimit_async",
      "ratelimit_limit",
      "ratelimit_duration_ms",
      "ratelimits",
      "cost_max",
      "permissions",
      "ip_allow",
      "has_counter",
    ])
    .expression(
      db
        .selectFrom("apis")
        .where("id", "=", key.apiId)
        .where("is_deleting", "=", 0)
        .select([
          text(key.secretDigest).as("digest"),
          text(key.id).as("key_id"),
          "id",
          text(key.start).as("start"),
          text(key.ownerId).as("owner_id"),
          text(key.name).as("key_name"),
          text(JSON.stringify(key.meta)).as("meta"),
          whole(Number(key.enabled)).as("enabled"),
          whole(key.expiresAtMs).as("expires_at_ms"),
          whole(key.createdAtMs).as("created"),
          whole(key.createdAtMs).as("updated"),
          whole(key.createdAtMs).as("secret_created"),
          whole(1).as("key_version"),
          text(event.id).as("key_event_id"),
          whole(ratelimit_async).as("ratelimit_async"),
          whole(ratelimit_limit).as("ratelimit_limit"),
          whole(ratelimit_duration_ms).as("ratelimit_duration_ms"),
          text(rateLimitsColumn(key.rateLimits)).as("ratelimits"),
          whole(key.costMax).as("cost_max"),
          text(listColumn(key.permissions)).as("permissions"),
          text(listColumn(key.ipAllow)).as("ip_allow"),
          whole(Number(hasCounter)).as("has_counter"),
        ])
        .modifyEnd(forKeyShare),
    )
    .returning("id")
    .compile();
}

/** Of texts. An empty list is none. */
export function listColumn(texts: readonly string[] | null | undefined): string | null {
  return texts?.length ? JSON.stringify(texts) : null;
}

/** An empty list is none here too. */
export function rateLimitsColumn(limits: readonly NamedRateLimit[] | null | undefined): string | null {
  return limits?.length ? JSON.stringify(limits.map(toNamedRateLimit)) : null;
}

export function rateLimitColumns(rateLimit: RateLimit | undefined) {
  return {
    ratelimit_async: rateLimit === undefined ? null : Number(rateLimit.mode === "local"),
    ratelimit_limit: rateLimit?.limit ?? null,
    ratelimit_duration_ms: rateLimit?.durationMs ?? null,
  };
}
