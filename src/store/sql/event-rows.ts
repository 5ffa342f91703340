import { type CompiledQuery, type RawBuilder, sql } from "kysely";
import { earliestId } from "../../domain/id.ts";
import type { Command } from "../commands.ts";
import { fieldsOf, methodOf } from "../events.ts";
import { compileOnce } from "./compile-once.ts";
import type { Target } from "./plan.ts";
import type { SqlEngine } from "./sql-engine.ts";
import { text, whole } from "./sql-values.ts";

/** To be part of the transaction that makes the change. A change that is not made adds nothing. */
export function addEvent(engine: SqlEngine, command: Command, target: Target): CompiledQuery {
  const { id, atMs, actor } = command.event;
  const method = methodOf[command.kind];
  return insertEvent[target.table](engine, {
    id,
    atMs,
    method,
    actor,
    targetId: target.id,
    fields: fieldsOf(command).join(),
  });
}

/** `apiId`: the API that a change concerns, as a column of its target. `apiIds`: likewise, all of them. */
function insertEventOf(table: Target["table"], apiId: RawBuilder<string | null>, apiIds = sql<string | null>`NULL`) {
  return compileOnce(["id", "atMs", "method", "actor", "targetId", "fields"], ({ db }, values) =>
    db
      .insertInto("events")
      .columns(["id", "at_ms", "method", "actor", "target_id", "api_id", "api_ids", "fields", "version"])
      .expression(
        db
          .selectFrom(table)
          .where("id", "=", values.targetId)
          .where("event_id", "=", values.id)
          .select([
            "event_id",
            whole(values.atMs).as("at_ms"),
            text(values.method).as("method"),
            text(values.actor).as("actor"),
            "id",
            apiId.as("api_id"),
            apiIds.as("api_ids"),
            text(values.fields).as("fields"),
            "version",
          ]),
      )
      .compile(),
  );
}

const insertEvent = {
  keys: insertEventOf("keys", sql.ref("api_id")),
  apis: insertEventOf("apis", sql.ref("id")),
  owners: insertEventOf("owners", sql.ref("first_api_id"), sql.ref("api_ids")),
  // It concerns the service.
  root_keys: insertEventOf("root_keys", sql`NULL`),
};

const tidyStep = 500;

/** Removes events of before that moment, oldest first, in small transactions: a large one would hold up others. */
export async function tidyEvents({ db }: SqlEngine, beforeMs: number): Promise<void> {
  const oldest = db
    .selectFrom("events")
    .select("id")
    .where("id", "<", earliestId("evt", beforeMs))
    .orderBy("id")
    .limit(tidyStep);
  for (;;) {
    const { numDeletedRows } = await db.deleteFrom("events").where("id", "in", oldest).executeTakeFirst();
    // Fewer also if another process removes them at the same time: then that one goes on.
    if (numDeletedRows < tidyStep) return;
  }
}
