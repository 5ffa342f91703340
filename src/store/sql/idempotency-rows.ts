import { type CompiledQuery, type RawBuilder, sql } from "kysely";
import type { IdempotencyRecord, KeptAnswer, NewEvent } from "../commands.ts";
import type { Target } from "./plan.ts";
import type { SqlEngine } from "./sql-engine.ts";
import { text, whole } from "./sql-values.ts";

/** The answer that is kept under this lookup, unless it has expired by then. */
export async function findKeptAnswer(
  { db }: SqlEngine,
  lookup: string,
  nowMs: number,
): Promise<KeptAnswer | undefined> {
  const row = await db
    .selectFrom("idempotency")
    .select(["request_digest", "sealed_answer", "target_id"])
    .where("lookup", "=", lookup)
    .where("expires_at_ms", ">", nowMs)
    .executeTakeFirst();
  return row && { targetId: row.target_id, requestDigest: row.request_digest, sealedAnswer: row.sealed_answer };
}

/** To be part of the transaction that makes the change, if it does. A record that is there already fails all of it. */
export function keepAnswer(
  { db }: SqlEngine,
  record: IdempotencyRecord,
  target: Target,
  event: NewEvent,
  isMade: RawBuilder<boolean> = sql<boolean>`event_id = ${event.id}`,
): CompiledQuery[] {
  return [
    // This one only: clearing away all that has expired is `tidy`'s, and would make creates wait for each other.
    db
      .deleteFrom("idempotency")
      .where("lookup", "=", record.lookup)
      .where("expires_at_ms", "<=", record.createdAtMs)
      .compile(),
    db
      .insertInto("idempotency")
      .columns(["lookup", "request_digest", "sealed_answer", "target_id", "expires_at_ms"])
      .expression(
        db
          .selectFrom(target.table)
          .where("id", "=", target.id)
          .where(isMade)
          .select([
            text(record.lookup).as("lookup"),
            text(record.requestDigest).as("request_digest"),
            text(record.sealedAnswer).as("sealed_answer"),
            text(record.targetId).as("target_id"),
            whole(record.expiresAtMs).as("expires_at_ms"),
          ]),
      )
      .compile(),
  ];
}

/** Removes kept answers that have expired by then. */
export async function forgetExpiredAnswers({ db }: SqlEngine, nowMs: number): Promise<void> {
  await db.deleteFrom("idempotency").where("expires_at_ms", "<=", nowMs).execute();
}
