import { sql } from "kysely";
import type { StoredEvent } from "../../domain/event.ts";
import { earliestId } from "../../domain/id.ts";
import type { EventPage, EventsQuery } from "../queries.ts";
import { behindAllIds, type Finding, isOneOf, readFound, type Walk, walk, walkAll } from "./pages.ts";
import type { Schema } from "./schema.ts";
import type { SqlEngine } from "./sql-engine.ts";

/** Most events that are walked: each has to be read, because no index has all columns of the filters. */
const walkMax = 1500;
/** All of them are taken along: joined by their ids, Postgres might read the whole table for them. */
const columns = ["id", "at_ms", "method", "actor", "target_id", "api_id", "fields", "version"] as const;
/** Most APIs whose events are walked one by one. Of more APIs, most events match. */
const apisWalkedMax = 50;

/**
 * A page of events. They are walked in the index of the target, of the actor, of the method or of the API, whichever is asked
 * for first in this order, or by their ids. Moments are bounds of ids, which begin with the time.
 */
export async function listEvents(engine: SqlEngine, query: EventsQuery): Promise<EventPage> {
  const { limit } = query;
  const page = await readFound<EventRow>(engine, findEvents(query), { columns });
  const rows = page?.rows ?? [];
  const events = rows.slice(0, limit).map(toStoredEvent);
  const cursor = rows.length > limit ? events.at(-1)?.id : page?.reached;
  return cursor === undefined ? { events } : { events, cursor };
}

function findEvents(query: EventsQuery): Finding {
  const { targetId, actor, method, apiIds, limit } = query;
  const asked = Object.entries({ target_id: targetId, actor, method }).flatMap(([column, value]) =>
    value === undefined ? [] : [{ column, value }],
  );
  const [group, ...others] = asked;
  const common = { table: "events", ...rangeOf(query), columns, filters: [], walkMax, limit } as const;
  const [first, ...rest] = (apiIds ?? []).map((value): Walk => ({ ...common, group: { column: "api_id", value } }));
  if (group === undefined && first !== undefined && rest.length < apisWalkedMax) return walkAll([first, ...rest]);
  const conditions = [
    ...others.map(({ column, value }) => sql`${sql.ref(column)} = ${value}`),
    ...(apiIds === undefined ? [] : [isOneOf("api_id", apiIds)]),
  ];
  return walk({ ...common, group, filters: conditions.map((condition) => ({ columns: [], condition })) });
}

function rangeOf({ sinceMs, untilMs, after = behindAllIds }: EventsQuery): Pick<Walk, "before" | "from"> {
  const until = untilMs === undefined ? behindAllIds : earliestId("evt", untilMs);
  const from = sinceMs === undefined ? undefined : earliestId("evt", sinceMs);
  return { before: until < after ? until : after, from };
}

type EventRow = Schema["events"];

function toStoredEvent(row: EventRow): StoredEvent {
  return {
    id: row.id,
    atMs: row.at_ms,
    method: row.method,
    actor: row.actor,
    targetId: row.target_id,
    apiId: row.api_id ?? undefined,
    fields: row.fields === "" ? [] : row.fields.split(","),
    version: row.version ?? undefined,
  };
}
