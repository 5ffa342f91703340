import { type CompiledQuery, sql } from "kysely";
import { latestBoundaryMs } from "../../domain/refill-calendar.ts";
import { counterOfOwner } from "../../domain/subject.ts";
import type { RefillRule, UsageCounter } from "../../domain/usage.ts";
import type { NewEvent } from "../commands.ts";
import { isChangedBy } from "./is-changed-by.ts";
import type { Target } from "./plan.ts";
import type { SqlEngine } from "./sql-engine.ts";
import { text, whole } from "./sql-values.ts";

/* The changes of counters. Each is made only if the change of the row that has the counter is. */

/** A key or an owner: its row, and the subject of its counter. */
export interface CounterHolder {
  readonly target: Target;
  readonly subject: string;
}

export function keyWithCounter(id: string): CounterHolder {
  return { target: { table: "keys", id }, subject: id };
}

export function ownerWithCounter(id: string): CounterHolder {
  return { target: { table: "owners", id }, subject: counterOfOwner(id) };
}

export function insertCounter(
  { db }: SqlEngine,
  { target, subject }: CounterHolder,
  { remaining, refill }: UsageCounter,
  event: NewEvent,
) {
  return db
    .insertInto("counters")
    .columns(["subject", "remaining", "refill_interval", "refill_amount", "refill_carry_over", "refilled_through_ms"])
    .expression(
      db
        .selectFrom(target.table)
        .where("id", "=", target.id)
        .where("event_id", "=", event.id)
        .select([
          text(subject).as("subject"),
          whole(remaining).as("remaining"),
          text(refill?.interval).as("refill_interval"),
          whole(refill?.amount).as("refill_amount"),
          whole(refill && Number(refill.carryOver)).as("refill_carry_over"),
          whole(refill?.refilledThroughMs).as("refilled_through_ms"),
        ]),
    );
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
