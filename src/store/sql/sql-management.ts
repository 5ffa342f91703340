import { type CompiledQuery, type QueryResult, sql } from "kysely";
import type { NewKey } from "../../domain/key.ts";
import { andThen, type MaybePromise } from "../../domain/maybe-promise.ts";
import type { RateLimit } from "../../domain/rate-limit.ts";
import { Unavailable } from "../../domain/unavailable.ts";
import { newCounter, type UsageCounter } from "../../domain/usage.ts";
import type { Answers, Command, IdempotencyRecord, KeptAnswer, Management, Outcome, Query } from "../management.ts";
import { readKey } from "./read-keys.ts";
import { addKeyChange } from "./sql-change-feed.ts";
import { CheckViolation, type SqlEngine, UniqueViolation } from "./sql-engine.ts";
import { conflictOf, updateRemainingOutcome, updateRemainingQueries } from "./update-remaining.ts";

/** Commands and queries in SQL, the same on every engine. */
export function createSqlManagement(engine: SqlEngine): Management {
  const { db } = engine;

  return {
    async change<Made extends Command>(command: Made, idempotency?: IdempotencyRecord) {
      const planned = plan(command);
      // Only if it has to: changes of one turn share a commit of the embedded engine.
      const outcome = await atomically(planned instanceof Promise ? await planned : planned, idempotency);
      return outcome as Outcome<Made["kind"]>;
    },

    read: <Asked extends Query>(query: Asked) => answer(query) as Promise<Answers[Asked["kind"]]>,
  };

  async function answer(query: Query): Promise<Answers[Query["kind"]]> {
    switch (query.kind) {
      case "keptAnswer":
        return findKeptAnswer(query.lookup, query.nowMs);
      case "key":
        return readKey(engine, "id", query.keyId);
      case "keyOfSecret":
        return readKey(engine, "digest", query.digest);
    }
  }

  /** Queries that run as one transaction, and what their results mean. */
  function plan(command: Command): MaybePromise<Plan> {
    switch (command.kind) {
      case "createKey":
        return createKey(command.key);
      case "deleteKey":
        return deleteKey(command.keyId);
      case "setRateLimit":
        return setRateLimit(command);
      case "updateRemaining":
        return {
          queries: updateRemainingQueries(engine, command),
          outcomeOf: (results) => updateRemainingOutcome(command, results),
        };
    }
  }

  async function atomically(
    { queries, outcomeOf }: Plan,
    idempotency: IdempotencyRecord | undefined,
  ): Promise<Outcome<Command["kind"]>> {
    // The idempotency record goes first: if it is there already, its key fails the transaction and nothing is stored.
    const kept = idempotency === undefined ? [] : keep(idempotency);
    try {
      const results = await engine.atomically([...kept, ...queries]);
      return outcomeOf(results.slice(kept.length));
    } catch (error) {
      const reason = error instanceof CheckViolation ? conflictOf(error) : undefined;
      if (reason !== undefined) return { outcome: "conflict", reason };
      if (!(error instanceof UniqueViolation) || idempotency === undefined) throw error;
      const record = await findKeptAnswer(idempotency.lookup, idempotency.createdAtMs);
      // Gone between the two statements only if it expired just then: the repeated request may try again.
      if (record === undefined) throw new Unavailable("the kept answer has just expired");
      return { outcome: "repeated", record };
    }
  }

  async function findKeptAnswer(lookup: string, nowMs: number): Promise<KeptAnswer | undefined> {
    const row = await db
      .selectFrom("idempotency")
      .select(["request_digest", "sealed_answer"])
      .where("lookup", "=", lookup)
      .where("expires_at_ms", ">", nowMs)
      .executeTakeFirst();
    return row && { requestDigest: row.request_digest, sealedAnswer: row.sealed_answer };
  }

  function createKey(key: NewKey): MaybePromise<Plan> {
    // Begun by the clock that will refill it: by another, the first refill could be doubled or left out.
    const began = key.refill === undefined ? key.createdAtMs : engine.ledgerNowMs();
    return andThen(began, (nowMs) => {
      const counter = key.remaining === undefined ? undefined : newCounter(key.remaining, key.refill, nowMs);
      return { queries: insertKey(key, counter), outcomeOf: () => ({ outcome: "done", changed: [] }) };
    });
  }

  // Every change locks the key's own row before any other, so that no two wait for each other in a circle. It adds its
  // row to the change feed in the same transaction, with the digest of the secret that the key has then.

  function setRateLimit({ keyId, rateLimit, atMs }: CommandOf<"setRateLimit">): Plan {
    const { ratelimit_limit, ratelimit_duration_ms, ...mode } = rateLimitColumns(rateLimit);
    const rule = { ratelimit_limit, ratelimit_duration_ms };
    const queries = [
      db
        .updateTable("keys")
        .set({ ...mode, ...rule, version: sql`version + 1`, updated_at_ms: atMs })
        .where("id", "=", keyId)
        .returning("digest")
        .compile(),
      rateLimit?.mode === "strict"
        ? insertWindow(keyId)
        : db.updateTable("key_permits").set(rule).where("key_id", "=", keyId).compile(),
      addKeyChange(engine, keyId),
    ];
    return { queries, outcomeOf: ([keys]) => changedKey(keyId, keys) };
  }

  function deleteKey(keyId: string): Plan {
    const queries = [
      lockKey(keyId),
      addKeyChange(engine, keyId),
      // Counter and window go with the key, by their foreign keys.
      db.deleteFrom("keys").where("id", "=", keyId).compile(),
    ];
    return { queries, outcomeOf: ([keys]) => changedKey(keyId, keys) };
  }

  /** An update that changes nothing, because the embedded engine knows no `FOR UPDATE`. Answers the key if it is there. */
  function lockKey(keyId: string): CompiledQuery {
    const enabled = sql.ref<number>("enabled");
    return db.updateTable("keys").set({ enabled }).where("id", "=", keyId).returning("digest").compile();
  }

  /** Gives the key its window with its limit and duration; one that is there already takes over those alone. */
  function insertWindow(keyId: string): CompiledQuery {
    const none = sql<number>`0`;
    return db
      .insertInto("key_permits")
      .columns(["key_id", "ratelimit_limit", "ratelimit_duration_ms", ...windowColumns])
      .expression(
        db
          .selectFrom("keys")
          .where("id", "=", keyId)
          .select(["id", "ratelimit_limit", "ratelimit_duration_ms"])
          .select(windowColumns.map((column) => none.as(column))),
      )
      .onConflict((conflict) =>
        conflict.column("key_id").doUpdateSet(({ ref }) => ({
          ratelimit_limit: ref("excluded.ratelimit_limit"),
          ratelimit_duration_ms: ref("excluded.ratelimit_duration_ms"),
        })),
      )
      .compile();
  }

  function insertKey(key: NewKey, counter: UsageCounter | undefined): CompiledQuery[] {
    const api = { id: key.apiId, created_at_ms: key.createdAtMs };
    return [
      db
        .insertInto("apis")
        .values(api)
        .onConflict((conflict) => conflict.column("id").doNothing())
        .compile(),
      db
        .insertInto("keys")
        .values({
          digest: key.secretDigest,
          id: key.id,
          api_id: key.apiId,
          start: key.start,
          owner_id: key.ownerId ?? null,
          name: key.name ?? null,
          meta: JSON.stringify(key.meta),
          enabled: key.enabled ? 1 : 0,
          expires_at_ms: key.expiresAtMs ?? null,
          created_at_ms: key.createdAtMs,
          updated_at_ms: key.createdAtMs,
          version: 1,
          ...rateLimitColumns(key.rateLimit),
          has_counter: Number(counter !== undefined),
        })
        .compile(),
      ...(counter === undefined
        ? []
        : [
            db
              .insertInto("key_usage")
              .values({
                key_id: key.id,
                remaining: counter.remaining,
                refill_interval: counter.refill?.interval ?? null,
                refill_amount: counter.refill?.amount ?? null,
                refill_carry_over: counter.refill === undefined ? null : Number(counter.refill.carryOver),
                refilled_through_ms: counter.refill?.refilledThroughMs ?? null,
              })
              .compile(),
          ]),
      ...(key.rateLimit?.mode === "strict" ? [insertWindow(key.id)] : []),
    ];
  }

  function keep(record: IdempotencyRecord): CompiledQuery[] {
    return [
      // This one only: clearing away all that has expired is `tidy`'s, and would make creates wait for each other.
      db
        .deleteFrom("idempotency")
        .where("lookup", "=", record.lookup)
        .where("expires_at_ms", "<=", record.createdAtMs)
        .compile(),
      db
        .insertInto("idempotency")
        .values({
          lookup: record.lookup,
          request_digest: record.requestDigest,
          sealed_answer: record.sealedAnswer,
          expires_at_ms: record.expiresAtMs,
        })
        .compile(),
    ];
  }
}

/** All 0 in a window that was never opened. */
const windowColumns = [
  "gen",
  "ends_at_ms",
  "window_duration_ms",
  "clamped_ends_at_ms",
  "granted",
  "spent",
  "contended",
] as const;

type CommandOf<Kind extends Command["kind"]> = Extract<Command, { readonly kind: Kind }>;

interface Plan {
  readonly queries: readonly CompiledQuery[];
  readonly outcomeOf: (results: readonly Rows[]) => Outcome<Command["kind"]>;
}

type Rows = Pick<QueryResult<unknown>, "rows">;

/** `keys` has the digest of the key if there is one. */
function changedKey(keyId: string, keys: Rows | undefined): Outcome {
  const row = keys?.rows[0] as { digest: string } | undefined;
  return row === undefined ? { outcome: "missing" } : { outcome: "done", changed: [{ keyId, digests: [row.digest] }] };
}

function rateLimitColumns(rateLimit: RateLimit | undefined) {
  return {
    ratelimit_async: rateLimit === undefined ? null : Number(rateLimit.mode === "local"),
    ratelimit_limit: rateLimit?.limit ?? null,
    ratelimit_duration_ms: rateLimit?.durationMs ?? null,
  };
}

/** Removes kept answers that have expired by then. */
export async function forgetExpiredAnswers({ db }: SqlEngine, nowMs: number): Promise<void> {
  await db.deleteFrom("idempotency").where("expires_at_ms", "<=", nowMs).execute();
}
