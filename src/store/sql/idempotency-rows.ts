import type { IdempotencyRecord, KeptAnswer, NewEvent } from "../commands.ts";
import type { ChangeTarget } from "./plan.ts";
import { type Sql, sql, sqlText, whole } from "./sql.ts";
import type { SqlEngine } from "./sql-engine.ts";

/** The answer that is kept under this lookup, unless it has expired by then. */
export async function findKeptAnswer(
  engine: SqlEngine,
  { lookup, nowMs }: { readonly lookup: string; readonly nowMs: number },
): Promise<KeptAnswer | undefined> {
  const [found] = await engine.read<KeptAnswer>(sql`
    SELECT target_id AS "targetId", request_digest AS "requestDigest", sealed_answer AS "sealedAnswer"
    FROM idempotency WHERE lookup = ${lookup} AND expires_at_ms > ${nowMs}`);
  return found;
}

/** To be part of the transaction that makes the change, if it does. A record that is there already fails all of it. */
export function keepAnswer(
  { lookup, requestDigest, sealedAnswer, targetId, createdAtMs, expiresAtMs }: IdempotencyRecord,
  target: ChangeTarget,
  event: NewEvent,
  isMade = sql`event_id = ${event.id}`,
): Sql[] {
  const kept = [sqlText(lookup), sqlText(requestDigest), sqlText(sealedAnswer), sqlText(targetId), whole(expiresAtMs)];
  return [
    // This one only: clearing away all that has expired is `tidy`'s, and would make creates wait for each other.
    sql`DELETE FROM idempotency WHERE lookup = ${lookup} AND expires_at_ms <= ${createdAtMs}`,
    sql`INSERT INTO idempotency (lookup, request_digest, sealed_answer, target_id, expires_at_ms)
      SELECT ${sql.join(kept)} FROM ${sql.ref(target.table)} WHERE id = ${target.id} AND ${isMade}`,
  ];
}
