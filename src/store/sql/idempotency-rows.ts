import { type CompiledQuery, type RawBuilder, sql } from "kysely";
import type { IdempotencyRecord, KeptAnswer, NewEvent } from "../commands.ts";
import type { Target } from "./plan.ts";
import type { SqlEngine } from "./sql-engine.ts";
import { text, whole } from "./sql-values.ts";

/** The answer that is kept under this lookup, unless it has expired by then. */
export async function findKeptAnswer(
  { db }: SqlEngine,
  { lookup, nowMs }: { readonly lookup: string; readonly nowMs: number },
): Promise<KeptAnswer | undefined> {
  const found = db.selectFrom("idempotency").where("lookup", "=", lookup).where("expires_at_ms", ">", nowMs);
  const row = await found.select(["request_digest", "sealed_answer", "target_id"]).executeTakeFirst();
  return row && { targetId: row.target_id, requestDigest: row.request_digest, sealedAnswer: row.sealed_answer };
}

/** To be part of the transaction that makes the change, if it does. A record that is there already fails all of it. */
export function keepAnswer(
  { db }: SqlEngine,
  { lookup, requestDigest, sealedAnswer, targetId, createdAtMs, expiresAtMs }: IdempotencyRecord,
  target: Target,
  event: NewEvent,
  isMade: RawBuilder<boolean> = sql<boolean>`event_id = ${event.id}`,
): CompiledQuery[] {
  const kept = [text(lookup), text(requestDigest), text(sealedAnswer), text(targetId), whole(expiresAtMs)];
  return [
    // This one only: clearing away all that has expired is `tidy`'s, and would make creates wait for each other.
    sql`DELETE FROM idempotency WHERE lookup = ${lookup} AND expires_at_ms <= ${createdAtMs}`.compile(db),
    sql`INSERT INTO idempotency (lookup, request_digest, sealed_answer, target_id, expires_at_ms)
      SELECT ${sql.join(kept)} FROM ${sql.table(target.table)} WHERE id = ${target.id} AND ${isMade}`.compile(db),
  ];
}

/** Removes kept answers that have expired by then. */
export async function forgetExpiredAnswers({ db }: SqlEngine, nowMs: number): Promise<void> {
  await db.deleteFrom("idempotency").where("expires_at_ms", "<=", nowMs).execute();
}
