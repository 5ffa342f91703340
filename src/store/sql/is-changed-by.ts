import { type RawBuilder, sql } from "kysely";
import type { NewEvent } from "../commands.ts";
import type { Target } from "./plan.ts";

/** In SQL: whether the target's last change is this one. */
export function isChangedBy(event: NewEvent, { table, id }: Target): RawBuilder<boolean> {
  return sql<boolean>`EXISTS (SELECT 1 FROM ${sql.table(table)} WHERE id = ${id} AND event_id = ${event.id})`;
}
