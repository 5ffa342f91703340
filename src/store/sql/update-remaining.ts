import { type CompiledQuery, sql } from "kysely";
import { Unavailable } from "../../domain/unavailable.ts";
import type { CounterChange, NewEvent, UpdateOwnerRemaining, UpdateRemaining } from "../commands.ts";
import type { Outcome } from "../management.ts";
import {
  type CounterHolder,
  deleteCounter,
  insertCounter,
  keyWithCounter,
  needsCounter,
  ownerWithCounter,
} from "./change-counters.ts";
import { changedKey } from "./change-keys.ts";
import { isChangedBy } from "./is-changed-by.ts";
import type { Plan } from "./plan.ts";
import { addKeyChange, addOwnerChange } from "./sql-change-feed.ts";
import type { SqlEngine } from "./sql-engine.ts";
import { notTouched, selectVersion, touchRow } from "./touch-row.ts";

/**
 * The counter's row is locked last: uses wait for it, so it is held no longer than for the COMMIT. What is not allowed violates
 * a constraint, so that nothing of the transaction happens: see `conflictOf`.
 */
export function updateRemainingPlan(engine: SqlEngine, command: UpdateRemaining | UpdateOwnerRemaining): Plan {
  const { op, value, event } = command;
  const isOfKey = command.kind === "updateRemaining";
  const holder = isOfKey ? keyWithCounter(command.keyId) : ownerWithCounter(command.ownerId);
  const { target } = holder;
  const ifVersion = isOfKey ? undefined : command.ifVersion;
  const has_counter = op === "set" ? Number(value !== undefined) : needsCounter;
  return {
    target,
    first: [
      touchRow(engine, target, event, { set: { has_counter }, ifVersion }),
      ...(ifVersion === undefined ? [] : [selectVersion(engine, target)]),
    ],
    feed: isOfKey ? addKeyChange(engine, target.id, event) : addOwnerChange(engine, "owner", target.id, event),
    rest: changeCounter(engine, holder, command, event),
    outcomeOf([touched, found], rest, told) {
      const row = touched?.rows[0] as { version: number } | undefined;
      if (row === undefined) return notTouched(found);
      const counter = rest.at(-1)?.rows[0] as { remaining: number } | undefined;
      // Only after a change by hand.
      if (counter === undefined && value !== undefined) throw new Unavailable("a stored counter is not there");
      const outcome: Outcome = isOfKey ? changedKey(target.id, told) : { outcome: "done", changed: [] };
      return { ...outcome, answer: { remaining: counter?.remaining, version: row.version } };
    },
  };
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
      return [insertIfNone(engine, holder, value, event), setBalance(sql`${value}`)];
    case "increment":
      return [setBalance(sql`available + ${value}`)];
    case "decrement":
      return [setBalance(sql`available - ${value}`)];
  }
}

/** For a key or owner that has no counter yet. Nothing else can make or remove it: its row is locked. */
function insertIfNone(engine: SqlEngine, holder: CounterHolder, remaining: number, event: NewEvent): CompiledQuery {
  return insertCounter(engine, holder, { remaining, refill: undefined }, event)
    .onConflict((conflict) => conflict.column("subject").doNothing())
    .compile();
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
