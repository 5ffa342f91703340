import { latestBoundaryMs } from "../../domain/refill-calendar.ts";
import type { Resource } from "../../domain/resources.ts";
import { counterOfOwner } from "../../domain/subject.ts";
import type { RefillRule, UsageCounter } from "../../domain/usage.ts";
import type { NewEvent } from "../commands.ts";
import { type ColumnValues, insertRow } from "./field-columns.ts";
import { type ChangeTarget, isChangedBy } from "./plan.ts";
import { type Sql, sql } from "./sql.ts";
import type { SqlEngine } from "./sql-engine.ts";
import { tables } from "./stored-rows.ts";

/* The changes of counters. Each is made only if the change of the row that has the counter is. */

/** A key or an owner: its row, and the subject of its counter. */
export interface CounterHolder {
  readonly target: ChangeTarget;
  readonly subject: string;
}

export function holderOf(resource: Resource, id: string): CounterHolder {
  const target = { table: tables[resource], id };
  return { target, subject: resource === "owner" ? counterOfOwner(id) : id };
}

/** The row of a counter. */
export function rowOfCounter(subject: string, { remaining, refill, meter }: UsageCounter): ColumnValues {
  return {
    subject,
    remaining,
    credited: meter.credited,
    metered_hour: meter.hour,
    metered_since_ms: meter.sinceMs,
    former_spent: meter.formerSpent,
    refill_interval: refill?.interval ?? null,
    refill_amount: refill?.amount ?? null,
    refill_carry_over: refill ? Number(refill.carryOver) : null,
    refilled_through_ms: refill?.refilledThroughMs ?? null,
  };
}

/** `ifNone`: only if there is no such counter yet. */
export function insertCounter(
  { target, subject }: CounterHolder,
  counter: UsageCounter,
  event: NewEvent,
  ifNone = false,
): Sql {
  const conflict = ifNone ? sql`ON CONFLICT (subject) DO NOTHING` : sql``;
  return insertRow("counters", rowOfCounter(subject, counter), sql`WHERE ${isChangedBy(event, target)} ${conflict}`);
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
): Sql {
  const through = rule && latestBoundaryMs(rule.interval, nowMs);
  const begins = sql`CASE WHEN through_ms > ${through} THEN through_ms ELSE ${through} END`;
  return sql`WITH ${engine.refilledCounter(subject)}
    UPDATE counters SET remaining = available, credited = available + spent,
      refill_interval = ${rule?.interval},
      refill_amount = ${rule?.amount},
      refill_carry_over = ${rule && Number(rule.carryOver)},
      refilled_through_ms = ${rule && begins}
    FROM refilled WHERE counters.subject = refilled.subject AND ${isChangedBy(event, target)}`;
}

/** In SQL, for an update: keeps it at 1. Without a counter it would become -1, which the constraint refuses. */
export const needsCounter = sql`2 * has_counter - 1`;
