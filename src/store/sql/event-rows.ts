import { type CompiledQuery, type RawBuilder, sql } from "kysely";
import { earliestId } from "../../domain/id.ts";
import type { Command } from "../commands.ts";
import { fieldsOf, methodOf } from "../events.ts";
import type { Target } from "./plan.ts";
import type { SqlEngine } from "./sql-engine.ts";
import { text, whole } from "./sql-values.ts";

/** To be part of the transaction that makes the change. A change that is not made adds nothing. */
export function addEvent({ db }: SqlEngine, command: Command, target: Target): CompiledQuery {
  const { id, atMs, actor } = command.event;
  return db
    .insertInto("events")
    .columns(["id", "at_ms", "method", "actor", "target_id", "api_id", "fields", "version"])
    .expression(
      db
        .selectFrom(target.table)
        .where("id", "=", target.id)
        .where("event_id", "=", id)
        .select([
          "event_id",
          whole(atMs).as("at_ms"),
          text(methodOf[command.kind]).as("method"),
          text(actor).as("actor"),
          "id",
          apiIdOf[target.table].as("api_id"),
          text(fieldsOf(command).join()).as("fields"),
          "version",
        ]),
    )
    .compile();
}

/** The API that a change concerns, by the table of its target. */
const apiIdOf: Readonly<Record<Target["table"], RawBuilder<string | null>>> = {
  keys: sql.ref("api_id"),
  apis: sql.ref("id"),
  // It concerns the service.
  root_keys: sql`NULL`,
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
