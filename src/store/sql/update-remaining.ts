import { type CompiledQuery, sql } from "kysely";
import { Unavailable } from "../../domain/unavailable.ts";
import type { UpdateRemaining } from "../commands.ts";
import { changedKey, ofKey } from "./change-keys.ts";
import { isChangedBy } from "./is-changed-by.ts";
import type { Plan } from "./plan.ts";
import { addKeyChange } from "./sql-change-feed.ts";
import type { SqlEngine } from "./sql-engine.ts";
import { whole } from "./sql-values.ts";
import { touchRow } from "./touch-row.ts";

/**
 * The counter's row is locked last: uses of the key wait for it, so it is held no longer than for the COMMIT. What is not
 * allowed violates a constraint, so that nothing of the transaction happens: see `conflictOf`.
 */
export function updateRemainingPlan(engine: SqlEngine, command: UpdateRemaining): Plan {
  const { db } = engine;
  const { keyId, op, value, event } = command;
  // A key without a counter gets -1, which the constraint refuses.
  const has_counter = op === "set" ? Number(value !== undefined) : sql<number>`2 * has_counter - 1`;
  return {
    target: ofKey(keyId),
    first: [touchRow(engine, ofKey(keyId), event, { set: { has_counter } })],
    feed: addKeyChange(engine, keyId, event),
    rest: changeCounter(),
    outcomeOf([touched], rest, told) {
      const outcome = changedKey(keyId, told);
      const key = touched?.rows[0] as { version: number } | undefined;
      if (key === undefined) return outcome;
      const counter = rest.at(-1)?.rows[0] as { remaining: number } | undefined;
      // Only after a change by hand.
      if (counter === undefined && value !== undefined) throw new Unavailable("a key's counter is not there");
      return { ...outcome, answer: { remaining: counter?.remaining, version: key.version } };
    },
  };

  function changeCounter(): CompiledQuery[] {
    // Not without a key: an id that a caller has made up could be the subject of another counter.
    if (value === undefined)
      return [db.deleteFrom("counters").where("subject", "=", keyId).where(isChangedBy(event, keyId)).compile()];
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
      .insertInto("counters")
      .columns(["subject", "remaining"])
      .expression(
        db
          .selectFrom("keys")
          .where("id", "=", keyId)
          .where("event_id", "=", event.id)
          .select(["id", whole(remaining).as("remaining")]),
      )
      .onConflict((conflict) => conflict.column("subject").doNothing())
      .compile();
  }

  /** Also where the balance before does not matter: a refill that was due must not be added to the new one later. */
  function setBalance(balance: ReturnType<typeof sql>): CompiledQuery {
    return sql`WITH ${engine.refilledCounter(keyId)}
      UPDATE counters SET remaining = ${balance}, refilled_through_ms = through_ms
      FROM refilled WHERE counters.subject = refilled.subject AND ${isChangedBy(event, keyId)}
      RETURNING counters.remaining`.compile(db);
  }
}
