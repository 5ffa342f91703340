import type { MaybePromise } from "../../domain/maybe-promise.ts";
import type { Command, NewEvent } from "../commands.ts";
import type { Outcome } from "../management.ts";
import { type Sql, sql } from "./sql.ts";

/**
 * A change as statements of one transaction. The first ones write the event's id into the row of the target, which locks it:
 * every change does so before anything else, so that no two wait for each other in a circle. Then come the event, the row of
 * the change feed and the idempotency record, each only if the target has the event's id, then the rest.
 */
export interface ChangePlan {
  readonly target: ChangeTarget;
  readonly first: readonly Sql[];
  /** Adds the events of a change that is about other rows than its target. Absent: one event, of the target. */
  readonly events?: Sql;
  /** In SQL, for a target that the change does not write to: whether the change is made. Absent: if it has the event's id. */
  readonly isMade?: Sql;
  /** Adds a row to the change feed. Absent: no cache can know the target. */
  readonly feed?: Sql;
  readonly rest: readonly Sql[];
  /** `announced`: what `feed` answers. */
  outcomeOf(
    first: readonly Rows[],
    rest: readonly Rows[],
    announced: Rows | undefined,
  ): MaybePromise<Outcome<Command["kind"]>>;
}

/** What a change is about: the row with this id. */
export interface ChangeTarget {
  readonly table: "keys" | "owners" | "root_keys" | "apis";
  readonly id: string;
}

export interface Rows {
  readonly rows: readonly unknown[];
}

/** In SQL: whether the target's last change is this one. */
export function isChangedBy(event: NewEvent, { table, id }: ChangeTarget): Sql {
  return sql`EXISTS (SELECT 1 FROM ${sql.ref(table)} WHERE id = ${id} AND event_id = ${event.id})`;
}

interface Touch {
  /** Columns to set: to values, or to what SQL says. */
  readonly set?: Readonly<Record<string, Sql | string | number | null>>;
  /** Only if this is the row's version. */
  readonly ifVersion?: number | undefined;
  /** In SQL: only if this holds of the row. */
  readonly only?: Sql | undefined;
}

/** Sets columns of the target and notes the change in its row, which locks it. Answers its version, if it was changed. */
export function touchRow({ table, id }: ChangeTarget, event: NewEvent, { set = {}, ifVersion, only }: Touch): Sql {
  const columns = Object.entries(set).map(([column, value]) => sql`${sql.ref(column)} = ${value}, `);
  return sql`UPDATE ${sql.ref(table)}
    SET ${sql.join(columns, "")}version = version + 1, updated_at_ms = ${event.atMs}, event_id = ${event.id}
    WHERE id = ${id}${ifVersion === undefined ? sql`` : sql` AND version = ${ifVersion}`}${only ? sql` AND ${only}` : sql``}
    RETURNING version`;
}

/** Deletes the target's row at the end of the change that has noted itself there. */
export function deleteRow({ table, id }: ChangeTarget, event: NewEvent): Sql {
  return sql`DELETE FROM ${sql.ref(table)} WHERE id = ${id} AND event_id = ${event.id}`;
}

/** Distinguishes a target of another version from one that is not there: see `notTouched`. */
export function selectVersion({ table, id }: ChangeTarget): Sql {
  return sql`SELECT version FROM ${sql.ref(table)} WHERE id = ${id}`;
}

/** Why the target was not changed. `found` is the answer of a query for its row. */
export function notTouched(found: Rows | undefined): Outcome {
  return found?.rows.length ? { outcome: "conflict", reason: "version" } : { outcome: "missing" };
}
