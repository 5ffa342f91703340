import { type CompiledQuery, type RawBuilder, sql } from "kysely";
import type { NewEvent } from "../commands.ts";
import type { Outcome } from "../management.ts";
import { compileOnce } from "./compile-once.ts";
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
export function touchRow(engine: SqlEngine, target: Target, event: NewEvent, touch: Touch = {}): CompiledQuery {
  const { set = {}, ifVersion, only } = touch;
  const values = { ...set, targetId: target.id, atMs: event.atMs, eventId: event.id, ifVersion };
  const hasExpressions =
    only !== undefined || Object.values(set).some((value) => value !== null && typeof value === "object");
  if (hasExpressions) return compileTouch(engine, target.table, Object.keys(set), values, only);
  return plainTouch(target.table, Object.keys(set), ifVersion !== undefined)(engine, values);
}

type PlainTouch = ReturnType<typeof compileOnce<string>>;

/** By table and columns: there are as many as there are sets of columns that can be changed together. */
const plainTouches = new Map<string, PlainTouch>();

function plainTouch(table: Target["table"], columns: readonly string[], hasVersion: boolean): PlainTouch {
  const shape = `${table} ${columns.join()} ${hasVersion}`;
  let found = plainTouches.get(shape);
  if (found === undefined) {
    const names = [...columns, "targetId", "atMs", "eventId", ...(hasVersion ? ["ifVersion"] : [])];
    found = compileOnce(names, (engine, values) =>
      compileTouch(engine, table, columns, values as unknown as TouchValues),
    );
    plainTouches.set(shape, found);
  }
  return found;
}

/** The values of columns by their names, and what every touch has. */
interface TouchValues extends Readonly<Record<string, unknown>> {
  readonly targetId: string;
  readonly atMs: number;
  readonly eventId: string;
  readonly ifVersion: number | undefined;
}

function compileTouch(
  { db }: SqlEngine,
  table: Target["table"],
  columns: readonly string[],
  { targetId, atMs, eventId, ifVersion, ...values }: TouchValues,
  only?: RawBuilder<boolean>,
): CompiledQuery {
  const set = columns.map((column) => sql`${sql.ref(column)} = ${values[column]}, `);
  const conditions = [
    ...(ifVersion === undefined ? [] : [sql` AND version = ${ifVersion}`]),
    ...(only === undefined ? [] : [sql` AND ${only}`]),
  ];
  return sql`UPDATE ${sql.table(table)}
    SET ${sql.join(set, sql``)}version = version + 1, updated_at_ms = ${atMs}, event_id = ${eventId}
    WHERE id = ${targetId}${sql.join(conditions, sql``)} RETURNING version`.compile(db);
}

/** Tells a target of another version from one that is not there: see `notTouched`. */
export function selectVersion({ db }: SqlEngine, { table, id }: Target): CompiledQuery {
  return sql`SELECT version FROM ${sql.table(table)} WHERE id = ${id}`.compile(db);
}

/** Why the target was not changed. `found` is the answer of a query for its row. */
export function notTouched(found: Rows | undefined): Outcome {
  return found?.rows.length ? { outcome: "conflict", reason: "version" } : { outcome: "missing" };
}
