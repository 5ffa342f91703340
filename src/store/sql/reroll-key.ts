import type { CompiledQuery } from "kysely";
import { endedSecretKeptMs } from "../../domain/overlap.ts";
import type { RerollKey } from "../commands.ts";
import { changedKey, ofKey } from "./change-keys.ts";
import { isChangedBy } from "./is-changed-by.ts";
import type { Plan } from "./plan.ts";
import { addKeyChange } from "./sql-change-feed.ts";
import type { SqlEngine } from "./sql-engine.ts";
import { whole } from "./sql-values.ts";
import { touchRow } from "./touch-row.ts";

/** Secrets that are removed in one transaction. */
const tidyStep = 500;

/**
 * The key's row is locked first, as by every change. The row of the feed comes next and names the secret that is replaced,
 * and the one that was replaced before it: it ends here, whether or not the other one lives on.
 */
export function rerollKeyPlan(engine: SqlEngine, command: RerollKey): Plan {
  const { db } = engine;
  const { keyId, secretDigest: digest, start, overlapMs, event } = command;
  return {
    target: ofKey(keyId),
    first: [touchRow(engine, ofKey(keyId), event)],
    feed: addKeyChange(engine, keyId, event),
    rest: [
      db
        .deleteFrom("ending_secrets")
        .where("key_id", "=", keyId)
        .where(isChangedBy(event, ofKey(keyId)))
        .compile(),
      ...(overlapMs === 0 ? [] : [insertEndingSecret()]),
      db
        .updateTable("keys")
        .set({ digest, start, secret_created_at_ms: event.atMs })
        .where("id", "=", keyId)
        .where("event_id", "=", event.id)
        .compile(),
    ],
    outcomeOf: (_, __, told) => changedKey(keyId, told),
  };

  function insertEndingSecret(): CompiledQuery {
    return db
      .insertInto("ending_secrets")
      .columns(["digest", "key_id", "start", "created_at_ms", "expires_at_ms"])
      .expression(
        db
          .selectFrom("keys")
          .where("id", "=", keyId)
          .where("event_id", "=", event.id)
          .select(["digest", "id", "start", "secret_created_at_ms"])
          .select(whole(event.atMs + overlapMs).as("expires_at_ms")),
      )
      .compile();
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
