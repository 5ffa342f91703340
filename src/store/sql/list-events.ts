import { type RawBuilder, sql } from "kysely";
import { earliestId } from "../../domain/id.ts";
import type { EventPage, EventsQuery, StoredEvent } from "../management.ts";
import { behindAllIds, isOneOf, readFound, walk } from "./pages.ts";
import type { Schema } from "./schema.ts";
import type { SqlEngine } from "./sql-engine.ts";

/** Most events that are walked: each has to be read, because no index has all columns of the filters. */
const walkMax = 1500;

/**
 * A page of events. They are walked in the index of the target, of the actor, of the method or of the API, whichever is asked
 * for first in this order, or by their ids. Moments are bounds of ids, which begin with the time.
 */
export async function listEvents(engine: SqlEngine, query: EventsQuery): Promise<EventPage> {
  const { sinceMs, untilMs, limit, after = behindAllIds } = query;
  const until = untilMs === undefined ? behindAllIds : earliestId("evt", untilMs);
  const before = until < after ? until : after;
  const from = sinceMs === undefined ? undefined : earliestId("evt", sinceMs);
  const [group, filters] = groupAndFilters(query);
  const finding = walk({ table: "events", group, before, from, filters, walkMax, limit });
  const page = await readFound<EventRow>(engine, finding, found);
  const rows = page?.rows ?? [];
  const events = rows.slice(0, limit).map(toStoredEvent);
  const cursor = rows.length > limit ? events.at(-1)?.id : page?.reached;
  return cursor === undefined ? { events } : { events, cursor };
}

function groupAndFilters({ targetId, actor, method, apiIds }: EventsQuery) {
  const [firstApi, ...otherApis] = apiIds ?? [];
  const columns = {
    target_id: targetId,
    actor,
    method,
    api_id: otherApis.length === 0 ? firstApi : undefined,
  };
  const given = Object.entries(columns).flatMap(([column, value]) => (value === undefined ? [] : [{ column, value }]));
  const [group, ...others] = given;
  const filters = others.map(({ column, value }) => [sql.ref(column), sql`${sql.ref(column)} = ${value}`] as const);
  if (apiIds !== undefined && columns.api_id === undefined) {
    filters.push([sql.ref("api_id"), isOneOf(sql.ref("api_id"), apiIds)]);
  }
  const toFilters = (at: 0 | 1): readonly RawBuilder<unknown>[] => filters.map((filter) => filter[at]);
  return [group, { columns: toFilters(0), conditions: toFilters(1) }] as const;
}

type EventRow = Schema["events"];

const columns = ["id", "at_ms", "method", "actor", "target_id", "api_id", "fields", "version"] as const;
const found = {
  columns: columns.map((column) => `events.${column}`),
  joins: sql`LEFT JOIN events ON events.id = page.id`,
};

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
