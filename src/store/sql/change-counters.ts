import { type CompiledQuery, sql } from "kysely";
import { latestBoundaryMs } from "../../domain/refill-calendar.ts";
import type { Resource } from "../../domain/resources.ts";
import { counterOfOwner } from "../../domain/subject.ts";
import type { RefillRule, UsageCounter } from "../../domain/usage.ts";
import type { NewEvent } from "../commands.ts";
import { columnsIn, valuesIn } from "./field-columns.ts";
import { isChangedBy } from "./is-changed-by.ts";
import type { Target } from "./plan.ts";
import type { SqlEngine } from "./sql-engine.ts";
import { text, whole } from "./sql-values.ts";
import { tables } from "./stored-rows.ts";

/* The changes of counters. Each is made only if the change of the row that has the counter is. */

/** A key or an owner: its row, and the subject of its counter. */
export interface CounterHolder {
  readonly target: Target;
  readonly subject: string;
}

export function holderOf(resource: Resource, id: string): CounterHolder {
  const target = { table: tables[resource], id };
  return { target, subject: resource === "owner" ? counterOfOwner(id) : id };
}

/** The columns of a counter's row, with their values in a SELECT. */
export function counterColumns(subject: string, { remaining, refill }: UsageCounter) {
  return {
    subject: text(subject),
    remaining: whole(remaining),
    refill_interval: text(refill?.interval),
    refill_amount: whole(refill?.amount),
    refill_carry_over: whole(refill && Number(refill.carryOver)),
    refilled_through_ms: whole(refill?.refilledThroughMs),
  };
}

/** `ifNone`: only if there is no such counter yet. */
export function insertCounter(
  { db }: SqlEngine,
  { target, subject }: CounterHolder,
  counter: UsageCounter,
  event: NewEvent,
  ifNone = false,
): CompiledQuery {
  const row = Object.entries(counterColumns(subject, counter));
  const conflict = ifNone ? sql`ON CONFLICT (subject) DO NOTHING` : sql``;
  return sql`INSERT INTO counters (${columnsIn(row)}) SELECT ${valuesIn(row)} WHERE ${isChangedBy(event, target)}
    ${conflict}`.compile(db);
}

/**
 * After every refill that is due by the rule before. The new one begins at the latest boundary, or where the old one has
 * got to if that is later: no boundary refills twice.
 */
export function setRefill(
  engine: SqlEngine,
  { target, subject }: CounterHolder,
  rule: RefillRule | null,
  nowMs: number,
  event: NewEvent,
): CompiledQuery {
  const through = rule && latestBoundaryMs(rule.interval, nowMs);
  const begins = sql`CASE WHEN through_ms > ${through} THEN through_ms ELSE ${through} END`;
  return sql`WITH ${engine.refilledCounter(subject)}
    UPDATE counters SET remaining = available,
      refill_interval = ${rule?.interval ?? null},
      refill_amount = ${rule?.amount ?? null},
      refill_carry_over = ${rule ? Number(rule.carryOver) : null},
      refilled_through_ms = ${rule ? begins : null}
    FROM refilled WHERE counters.subject = refilled.subject AND ${isChangedBy(event, target)}`.compile(engine.db);
}

/** Not without the row that has it: an id that a caller has made up could be the subject of another counter. */
export function deleteCounter({ db }: SqlEngine, { target, subject }: CounterHolder, event: NewEvent): CompiledQuery {
  return db.deleteFrom("counters").where("subject", "=", subject).where(isChangedBy(event, target)).compile();
}

/** In SQL, of an update: keeps it at 1. Without a counter it would become -1, which the constraint refuses. */
export const needsCounter = sql<number>`2 * has_counter - 1`;
