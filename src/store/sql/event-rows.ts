import { type CompiledQuery, type RawBuilder, sql } from "kysely";
import { earliestId } from "../../domain/id.ts";
import { type Command, methodOf } from "../commands.ts";
import { fieldsOf } from "../events.ts";
import { compileOnce } from "./compile-once.ts";
import type { Target } from "./plan.ts";
import type { SqlEngine } from "./sql-engine.ts";
import { text, whole } from "./sql-values.ts";

/** To be part of the transaction that makes the change. A change that is not made adds nothing. */
export function addEvent(engine: SqlEngine, command: Command, target: Target): CompiledQuery {
  const { id, atMs, actor } = command.event;
  const fields = fieldsOf(command).join();
  return insertEvent[target.table](engine, { id, atMs, method: methodOf(command), actor, targetId: target.id, fields });
}

/** `apiId`: the API that a change concerns, as a column of its target. `apiIds`: likewise, all of them. */
function insertEventOf(table: Target["table"], apiId: RawBuilder<unknown>, apiIds: RawBuilder<unknown> = sql`NULL`) {
  return compileOnce(["id", "atMs", "method", "actor", "targetId", "fields"], ({ db }, values) => {
    const [at, method, actor] = [whole(values.atMs), text(values.method), text(values.actor)];
    return sql`INSERT INTO events (id, at_ms, method, actor, target_id, api_id, api_ids, fields, version)
      SELECT event_id, ${at}, ${method}, ${actor}, id, ${apiId}, ${apiIds}, ${text(values.fields)}, version
      FROM ${sql.table(table)} WHERE id = ${values.targetId} AND event_id = ${values.id}`.compile(db);
  });
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
