import { type CompiledQuery, type RawBuilder, sql } from "kysely";
import type { NewEvent } from "../commands.ts";
import type { Outcome } from "../management.ts";
import type { Rows, Target } from "./plan.ts";
import type { SqlEngine } from "./sql-engine.ts";

interface Touch {
  /** Columns to set. */
  readonly set?: object;
  /** Only if this is the row's version. */
  readonly ifVersion?: number | undefined;
  /** In SQL: only if this holds of the row. */
  readonly only?: RawBuilder<boolean>;
}

/** Sets columns of the target and notes the change in its row, which locks it. Answers its version, if it was changed. */
export function touchRow({ db }: SqlEngine, { table, id }: Target, event: NewEvent, touch: Touch = {}): CompiledQuery {
  const { set = {}, ifVersion, only } = touch;
  return (
    db
      // All targets have these columns.
      .updateTable(table as "keys")
      .set({ ...set, version: sql`version + 1`, updated_at_ms: event.atMs, event_id: event.id })
      .where("id", "=", id)
      .$if(ifVersion !== undefined, (query) => query.where("version", "=", ifVersion as number))
      .$if(only !== undefined, (query) => query.where(only as RawBuilder<boolean>))
      .returning("version")
      .compile()
  );
}

/** Tells a target of another version from one that is not there: see `notTouched`. */
export function selectVersion({ db }: SqlEngine, { table, id }: Target): CompiledQuery {
  return db
    .selectFrom(table as "keys")
    .select("version")
    .where("id", "=", id)
    .compile();
}

/** Why the target was not changed. `found` is the answer of a query for its row. */
export function notTouched(found: Rows | undefined): Outcome {
  return found?.rows.length ? { outcome: "conflict", reason: "version" } : { outcome: "missing" };
}
