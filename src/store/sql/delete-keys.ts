import { type CompiledQuery, type RawBuilder, sql } from "kysely";
import { deleteWindows } from "./limit-windows.ts";
import type { SqlEngine } from "./sql-engine.ts";

/**
 * Deletes the keys that meet a condition, with their counters and windows; their secrets go with them, by their foreign keys.
 * Rows of each table are locked in the order in which the ledgers lock them. The condition holds of stored keys only: an id
 * that a caller has made up could be the subject of something else.
 */
export function deleteKeys(engine: SqlEngine, deleted: RawBuilder<unknown>): CompiledQuery[] {
  const { db, forUpdate } = engine;
  const ids = sql`SELECT id FROM keys WHERE ${deleted}`;
  const counters = sql`SELECT subject FROM counters WHERE subject IN (${ids}) ORDER BY subject ${forUpdate}`;
  return [
    sql`WITH locked AS MATERIALIZED (${counters})
      DELETE FROM counters WHERE subject IN (SELECT subject FROM locked)`.compile(db),
    deleteWindows(engine, engine.windowsOfKeys(ids)),
    sql`DELETE FROM keys WHERE ${deleted}`.compile(db),
  ];
}
