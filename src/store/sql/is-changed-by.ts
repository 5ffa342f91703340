import { type RawBuilder, sql } from "kysely";
import type { NewEvent } from "../commands.ts";

/** In SQL: whether the key's last change is this one. */
export function isChangedBy(event: NewEvent, keyId: string): RawBuilder<boolean> {
  return sql<boolean>`EXISTS (SELECT 1 FROM keys WHERE id = ${keyId} AND event_id = ${event.id})`;
}
