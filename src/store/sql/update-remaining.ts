import { type CompiledQuery, type QueryResult, sql } from "kysely";
import { Unavailable } from "../../domain/unavailable.ts";
import type { ConflictReason, Outcome, UpdateRemaining } from "../management.ts";
import { hasCounterCheck, remainingMaxCheck, remainingMinCheck } from "./schema.ts";
import { addKeyChange } from "./sql-change-feed.ts";
import type { CheckViolation, SqlEngine } from "./sql-engine.ts";

/**
 * The queries of `updateRemaining`, as one transaction. The key's row is locked first and the counter's last: uses of the
 * key wait for the counter's row, so it is held no longer than for the COMMIT. What is not allowed violates a constraint,
 * so that nothing of the transaction happens: see `conflictOf`.
 */
export function updateRemainingQueries(engine: SqlEngine, command: UpdateRemaining): CompiledQuery[] {
  const { db } = engine;
  const { keyId, op, value, atMs } = command;
  const changeKey = db
    .updateTable("keys")
    .set({
      version: sql<number>`version + 1`,
      updated_at_ms: atMs,
      // A key without a counter gets -1, which the constraint refuses.
      has_counter: op === "set" ? Number(value !== undefined) : sql<number>`2 * has_counter - 1`,
    })
    .where("id", "=", keyId)
    .returning(["digest", "version"])
    .compile();
  return [changeKey, addKeyChange(engine, keyId), ...changeCounter()];

  function changeCounter(): CompiledQuery[] {
    if (value === undefined) return [db.deleteFrom("key_usage").where("key_id", "=", keyId).compile()];
    switch (op) {
      case "set":
        return [insertCounter(value), setBalance(sql`${value}`)];
      case "increment":
        return [setBalance(sql`available + ${value}`)];
      case "decrement":
        return [setBalance(sql`available - ${value}`)];
    }
  }

  /** For a key that has no counter yet. Nothing else can make or remove it: the key's row is locked. */
  function insertCounter(remaining: number): CompiledQuery {
    return db
      .insertInto("key_usage")
      .columns(["key_id", "remaining"])
      .expression(
        db
          .selectFrom("keys")
          .where("id", "=", keyId)
          .select(["id", sql<number>`CAST(${remaining} AS bigint)`.as("remaining")]),
      )
      .onConflict((conflict) => conflict.column("key_id").doNothing())
      .compile();
  }

  /** Also where the balance before does not matter: a refill that was due must not be added to the new one later. */
  function setBalance(balance: ReturnType<typeof sql>): CompiledQuery {
    return sql`WITH ${engine.refilledCounter(keyId)}
      UPDATE key_usage SET remaining = ${balance}, refilled_through_ms = through_ms
      FROM refilled WHERE key_usage.key_id = refilled.key_id
      RETURNING key_usage.remaining`.compile(db);
  }
}

/** What the results of these queries mean. */
export function updateRemainingOutcome(
  { keyId, value }: UpdateRemaining,
  results: readonly Pick<QueryResult<unknown>, "rows">[],
): Outcome<"updateRemaining"> {
  const key = results[0]?.rows[0] as { digest: string; version: number } | undefined;
  if (key === undefined) return { outcome: "missing" };
  const counter = results.at(-1)?.rows[0] as { remaining: number } | undefined;
  // Only after a change by hand.
  if (counter === undefined && value !== undefined) throw new Unavailable("a key's counter is not there");
  return {
    outcome: "done",
    changed: [{ keyId, digests: [key.digest] }],
    answer: { remaining: counter?.remaining, version: key.version },
  };
}

/** Why a constraint has refused a change; undefined if no command leads to it. */
export function conflictOf({ constraint }: CheckViolation): ConflictReason | undefined {
  return reasons.get(constraint);
}

const reasons = new Map<string, ConflictReason>([
  [hasCounterCheck, "noCounter"],
  [remainingMinCheck, "belowZero"],
  [remainingMaxCheck, "aboveMax"],
]);
