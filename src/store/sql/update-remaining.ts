import { Unavailable } from "../../domain/unavailable.ts";
import { newCounter } from "../../domain/usage.ts";
import { resourceOf, type UpdateOwnerRemaining, type UpdateRemaining } from "../commands.ts";
import { holderOf, insertCounter, needsCounter } from "./change-counters.ts";
import { changePlan } from "./change-resources.ts";
import { type ChangePlan, isChangedBy } from "./plan.ts";
import { continueReadings, deleteCounter } from "./readings.ts";
import { type Sql, sql } from "./sql.ts";
import type { SqlEngine } from "./sql-engine.ts";

/**
 * The counter's row is locked last: uses wait for it, so it is held no longer than for the COMMIT. What is not allowed violates
 * a constraint, so that nothing of the transaction happens: see `conflictOf`.
 */
export function updateRemainingPlan(engine: SqlEngine, command: UpdateRemaining | UpdateOwnerRemaining): ChangePlan {
  const { op, value } = command;
  return changePlan(engine, command, {
    set: { has_counter: op === "set" ? Number(value !== undefined) : needsCounter },
    rest: changeCounter(engine, command),
    answerOf(rest, version) {
      const counter = rest.at(-1)?.rows[0] as { remaining: number } | undefined;
      // Only after a change by hand.
      if (counter === undefined && value !== undefined) throw new Unavailable("a stored counter is not there");
      return { remaining: counter?.remaining, version };
    },
  });
}

function changeCounter(engine: SqlEngine, command: UpdateRemaining | UpdateOwnerRemaining): Sql[] {
  const { id, op, value, event } = command;
  const holder = holderOf(resourceOf(command), id);
  if (value === undefined) return deleteCounter(engine, holder, event);
  const balances = { set: sql`${value}`, increment: sql`available + ${value}`, decrement: sql`available - ${value}` };
  // Also where the balance before does not matter: a refill that was due must not be added to the new one later.
  const setBalance = sql`WITH ${engine.refilledCounter(holder.subject)}
    UPDATE counters SET remaining = ${balances[op]}, credited = spent + ${balances[op]}, refilled_through_ms = through_ms
    FROM refilled WHERE counters.subject = refilled.subject AND ${isChangedBy(event, holder.target)}
    RETURNING counters.remaining`;
  if (op !== "set") return [setBalance];
  // Nothing else can make or remove it: the row of its key or owner is locked.
  const made = insertCounter(holder, newCounter(value, undefined, event.atMs), event, true);
  return [made, ...continueReadings(engine, holder, event), setBalance];
}
