import { type CompiledQuery, type RawBuilder, sql } from "kysely";
import { andThen, type MaybePromise } from "../../domain/maybe-promise.ts";
import { newCounter } from "../../domain/usage.ts";
import type { ImportedKey, ImportKeys } from "../commands.ts";
import { methodOf } from "../events.ts";
import { insertApi } from "./change-apis.ts";
import { listColumn, rateLimitColumns, rateLimitsColumn, refusedKey } from "./change-keys.ts";
import { insertWindows, limitRowsOfKey } from "./limit-windows.ts";
import type { Plan } from "./plan.ts";
import type { SqlEngine } from "./sql-engine.ts";
import { text, whole } from "./sql-values.ts";

/**
 * A few statements for all keys, however many there are. Keys whose digests exist are left out by the first; the others
 * depend on what it has stored. Keys are stored in the order of their digests, so that two imports of the same keys do not
 * wait for each other in a circle. The row of the feed comes last: it is locked for the COMMIT only.
 */
export function importKeysPlan(engine: SqlEngine, command: ImportKeys): MaybePromise<Plan> {
  const { apiId, keys, event, apiMustExist = false } = command;
  // Begun by the clock that will refill it: by another, the first refill could be doubled or left out.
  const began = keys.some(({ refill }) => refill !== undefined) ? engine.ledgerNowMs() : event.atMs;
  return andThen(began, (nowMs) => ({
    target: { table: "apis", id: apiId },
    isMade: sql<boolean>`is_deleting = 0`,
    events: addEvents(engine, command),
    first: [
      ...(apiMustExist ? [] : [insertApi(engine, { apiId }, event)]),
      lockApi(engine, apiId),
      insertKeys(engine, command),
    ],
    rest: [
      ...insertCounters(engine, keys, nowMs),
      ...insertWindows(
        engine,
        keys.flatMap(limitRowsOfKey),
        sql`holder_id IN (SELECT id FROM keys WHERE ${areStored(keys)})`,
      ),
      sql`UPDATE change_feed SET has_imported_keys = 1
        WHERE has_imported_keys = 0 AND EXISTS (SELECT 1 FROM keys WHERE ${areStored(keys)})`.compile(engine.db),
    ],
    outcomeOf(first) {
      const [api, stored] = first.slice(-2);
      if (!api?.rows.length) return refusedKey(engine, apiId, apiMustExist);
      const rows = (stored?.rows ?? []) as readonly { readonly id: string }[];
      return { outcome: "done", changed: [], answer: { keyIds: rows.map(({ id }) => id) } };
    },
  }));
}

/** Answers it if it takes keys. Then it cannot be deleted while the transaction is open, nor can its deletion overlook a key. */
function lockApi({ db, forKeyShare }: SqlEngine, apiId: string): CompiledQuery {
  return db
    .selectFrom("apis")
    .select("id")
    .where("id", "=", apiId)
    .where("is_deleting", "=", 0)
    .modifyEnd(forKeyShare)
    .compile();
}

function takesKeys(apiId: string): RawBuilder<boolean> {
  return sql<boolean>`EXISTS (SELECT 1 FROM apis WHERE id = ${apiId} AND is_deleting = 0)`;
}

function insertKeys({ db }: SqlEngine, { apiId, keys, event }: ImportKeys): CompiledQuery {
  const rows = keys.map((key) => {
    const rateLimit = rateLimitColumns(key.rateLimit);
    return {
      digest: text(key.secretDigest),
      id: text(key.id),
      api_id: text(key.apiId),
      start: text(key.start),
      owner_id: text(key.ownerId),
      name: text(key.name),
      meta: text(JSON.stringify(key.meta)),
      enabled: whole(Number(key.enabled)),
      expires_at_ms: whole(key.expiresAtMs),
      created_at_ms: whole(key.createdAtMs),
      updated_at_ms: whole(event.atMs),
      secret_created_at_ms: whole(key.createdAtMs),
      version: whole(1),
      event_id: text(key.eventId),
      ratelimit_async: whole(rateLimit.ratelimit_async),
      ratelimit_limit: whole(rateLimit.ratelimit_limit),
      ratelimit_duration_ms: whole(rateLimit.ratelimit_duration_ms),
      ratelimits: text(rateLimitsColumn(key.rateLimits)),
      cost_max: whole(key.costMax),
      permissions: text(listColumn(key.permissions)),
      ip_allow: text(listColumn(key.ipAllow)),
      has_counter: whole(Number(key.remaining !== undefined)),
    };
  });
  return sql`INSERT INTO keys (${columnsOf(rows)}) SELECT ${columnsOf(rows)} FROM ${tableOf(rows)}
    WHERE NOT EXISTS (SELECT 1 FROM ending_secrets WHERE ending_secrets.digest = given.digest) AND ${takesKeys(apiId)}
    ORDER BY digest ON CONFLICT DO NOTHING RETURNING id`.compile(db);
}

function insertCounters({ db }: SqlEngine, keys: readonly ImportedKey[], nowMs: number): CompiledQuery[] {
  const counted = keys.filter(({ remaining }) => remaining !== undefined);
  if (counted.length === 0) return [];
  const rows = counted.map(({ id, remaining = 0, refill: rule, createdAtMs }) => {
    const { refill } = newCounter(remaining, rule, rule === undefined ? createdAtMs : nowMs);
    return {
      subject: text(id),
      remaining: whole(remaining),
      refill_interval: text(refill?.interval),
      refill_amount: whole(refill?.amount),
      refill_carry_over: whole(refill && Number(refill.carryOver)),
      refilled_through_ms: whole(refill?.refilledThroughMs),
    };
  });
  const stored = sql`subject IN (SELECT id FROM keys WHERE ${areStored(counted)})`;
  return [
    sql`INSERT INTO counters (${columnsOf(rows)}) SELECT ${columnsOf(rows)} FROM ${tableOf(rows)} WHERE ${stored}`.compile(
      db,
    ),
  ];
}

/** One for each key that was stored. */
function addEvents({ db }: SqlEngine, { kind, keys, event }: ImportKeys): CompiledQuery {
  return db
    .insertInto("events")
    .columns(["id", "at_ms", "method", "actor", "target_id", "api_id", "fields", "version"])
    .expression(
      db
        .selectFrom("keys")
        .where(areStored(keys))
        .select([
          "event_id",
          whole(event.atMs).as("at_ms"),
          text(methodOf[kind]).as("method"),
          text(event.actor).as("actor"),
          "id",
          "api_id",
          text("").as("fields"),
          "version",
        ]),
    )
    .compile();
}

/** In SQL: whether a row of `keys` is one of these. */
function areStored(keys: readonly ImportedKey[]): RawBuilder<boolean> {
  const [ids, eventIds] = [sql.join(keys.map(({ id }) => id)), sql.join(keys.map(({ eventId }) => eventId))];
  return sql<boolean>`id IN (${ids}) AND event_id IN (${eventIds})`;
}

type Row = Readonly<Record<string, RawBuilder<unknown>>>;

function columnsOf([first]: readonly Row[]): RawBuilder<unknown> {
  return sql.join(Object.keys(first ?? {}).map((column) => sql.ref(column)));
}

/** The rows as a table with the name `given`. */
function tableOf(rows: readonly Row[]): RawBuilder<unknown> {
  const selects = rows.map((row) => {
    const columns = Object.entries(row).map(([name, value]) => sql`${value} AS ${sql.ref(name)}`);
    return sql`SELECT ${sql.join(columns)}`;
  });
  return sql`(${sql.join(selects, sql` UNION ALL `)}) AS given`;
}
