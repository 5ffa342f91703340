import { type CompiledQuery, sql } from "kysely";
import { Unavailable } from "../../domain/unavailable.ts";
import {
  type CounterChange,
  type NewEvent,
  resourceOf,
  type UpdateOwnerRemaining,
  type UpdateRemaining,
} from "../commands.ts";
import { type CounterHolder, deleteCounter, holderOf, insertCounter, needsCounter } from "./change-counters.ts";
import { changePlan } from "./change-resources.ts";
import { isChangedBy } from "./is-changed-by.ts";
import type { Plan } from "./plan.ts";
import type { SqlEngine } from "./sql-engine.ts";

/**
 * The counter's row is locked last: uses wait for it, so it is held no longer than for the COMMIT. What is not allowed violates
 * a constraint, so that nothing of the transaction happens: see `conflictOf`.
 */
export function updateRemainingPlan(engine: SqlEngine, command: UpdateRemaining | UpdateOwnerRemaining): Plan {
  const { id, op, value, event } = command;
  return changePlan(engine, command, {
    set: { has_counter: op === "set" ? Number(value !== undefined) : needsCounter },
    rest: changeCounter(engine, holderOf(resourceOf(command), id), command, event),
    answerOf(rest, version) {
      const counter = rest.at(-1)?.rows[0] as { remaining: number } | undefined;
      // Only after a change by hand.
      if (counter === undefined && value !== undefined) throw new Unavailable("a stored counter is not there");
      return { remaining: counter?.remaining, version };
    },
  });
}

function changeCounter(
  engine: SqlEngine,
  holder: CounterHolder,
  { op, value }: CounterChange,
  event: NewEvent,
): CompiledQuery[] {
  if (value === undefined) return [deleteCounter(engine, holder, event)];
  const setBalance = (balance: ReturnType<typeof sql>) => setBalanceOf(engine, holder, balance, event);
  switch (op) {
    case "set":
      // Nothing else can make or remove it: the row of its key or owner is locked.
      return [
        insertCounter(engine, holder, { remaining: value, refill: undefined }, event, true),
        setBalance(sql`${value}`),
      ];
    case "increment":
      return [setBalance(sql`available + ${value}`)];
    case "decrement":
      return [setBalance(sql`available - ${value}`)];
  }
}

/** Also where the balance before does not matter: a refill that was due must not be added to the new one later. */
function setBalanceOf(
  engine: SqlEngine,
  { target, subject }: CounterHolder,
  balance: ReturnType<typeof sql>,
  event: NewEvent,
): CompiledQuery {
  return sql`WITH ${engine.refilledCounter(subject)}
    UPDATE counters SET remaining = ${balance}, refilled_through_ms = through_ms
    FROM refilled WHERE counters.subject = refilled.subject AND ${isChangedBy(event, target)}
    RETURNING counters.remaining`.compile(engine.db);
}
