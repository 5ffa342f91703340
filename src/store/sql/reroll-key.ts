import { type CompiledQuery, sql } from "kysely";
import { endedSecretKeptMs } from "../../domain/overlap.ts";
import type { RerollKey } from "../commands.ts";
import { changePlan, targetOf } from "./change-resources.ts";
import { isChangedBy } from "./is-changed-by.ts";
import type { Plan } from "./plan.ts";
import type { SqlEngine } from "./sql-engine.ts";
import { whole } from "./sql-values.ts";

/** Secrets that are removed in one transaction. */
const tidyStep = 500;

/**
 * The key's row is locked first, as by every change. The row of the feed comes next and names the secret that is replaced,
 * and the one that was replaced before it: it ends here, whether or not the other one lives on.
 */
export function rerollKeyPlan(engine: SqlEngine, command: RerollKey): Plan {
  const { db } = engine;
  const { id, secretDigest: digest, start, overlapMs, event } = command;
  const isChanged = isChangedBy(event, targetOf("key", id));
  return changePlan(engine, command, {
    rest: [
      db.deleteFrom("ending_secrets").where("key_id", "=", id).where(isChanged).compile(),
      ...(overlapMs === 0 ? [] : [insertEndingSecret()]),
      db
        .updateTable("keys")
        .set({ digest, start, secret_created_at_ms: event.atMs })
        .where("id", "=", id)
        .where("event_id", "=", event.id)
        .compile(),
    ],
  });

  function insertEndingSecret(): CompiledQuery {
    return sql`INSERT INTO ending_secrets (digest, key_id, start, created_at_ms, expires_at_ms)
      SELECT digest, id, start, secret_created_at_ms, ${whole(event.atMs + overlapMs)} FROM keys
      WHERE id = ${id} AND event_id = ${event.id}`.compile(db);
  }
}

/** Removes secrets that have ended, in small transactions. Caches need not be told: they know the end. */
export async function removeEndedSecrets({ db }: SqlEngine, nowMs: number): Promise<void> {
  const endedBy = nowMs - endedSecretKeptMs;
  for (;;) {
    const ended = db
      .selectFrom("ending_secrets")
      .select("digest")
      .where("expires_at_ms", "<=", endedBy)
      .orderBy("expires_at_ms")
      .limit(tidyStep);
    const { numDeletedRows } = await db.deleteFrom("ending_secrets").where("digest", "in", ended).executeTakeFirst();
    if (numDeletedRows < tidyStep) return;
  }
}
