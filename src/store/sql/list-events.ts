import { type RawBuilder, sql } from "kysely";
import type { StoredEvent } from "../../domain/event.ts";
import { earliestId } from "../../domain/id.ts";
import type { EventsQuery, Page } from "../queries.ts";
import { behindAllIds, limitOf, partsOf, readFound, type Walk, walk } from "./pages.ts";
import type { Schema } from "./schema.ts";
import type { SqlEngine } from "./sql-engine.ts";

/** Most events that are walked: each has to be read, because no index has all columns of the filters. */
const walkMax = 1500;
/** All of them are taken along: joined by their ids, Postgres might read the whole table for them. */
const columns = ["id", "at_ms", "method", "actor", "target_id", "api_id", "fields", "version"] as const;

/**
 * A page of events. They are walked in the index of the target, of the actor or of the method, whichever is asked for first
 * in this order, or by their ids; for a root key that is limited to APIs, in the index of the target or of the APIs. Each
 * further index would have to be written with every change. Moments are bounds of ids, which begin with the time.
 */
export async function listEvents(engine: SqlEngine, query: EventsQuery): Promise<Page<StoredEvent>> {
  const { targetId, actor, method, apiIds } = query;
  const asked = Object.entries({ target_id: targetId, actor, method }).flatMap(([column, value]) =>
    value === undefined ? [] : [{ column, value }],
  );
  const group = apiIds === undefined || targetId !== undefined ? asked.slice(0, 1) : [];
  const others = asked.slice(group.length);
  const groups = apiIds === undefined ? [group] : partsOf(group, apiIds);
  if (groups.length === 0) return { items: [] };
  const limit = limitOf(query.limit, groups);
  const filters = [
    ...others.map(({ column, value }) => ({ columns: [], condition: sql`${sql.ref(column)} = ${value}` })),
    ...(apiIds === undefined ? [] : [{ columns: ["api_ids"], condition: concernsOnly(engine, apiIds) }]),
  ];
  const finding = walk(engine, {
    table: "events",
    idColumn: "id",
    groups,
    ...rangeOf(query),
    columns,
    filters,
    walkMax,
    limit,
  });
  const page = await readFound<EventRow>(engine, finding, { columns });
  const rows = page?.rows ?? [];
  const items = rows.slice(0, limit).map(toStoredEvent);
  return { items, cursor: rows.length > limit ? items.at(-1)?.id : page?.reached };
}

/** Of an event of an owner: it may concern other APIs too. */
function concernsOnly(engine: SqlEngine, apiIds: readonly string[]): RawBuilder<boolean> {
  return sql<boolean>`(api_ids IS NULL OR ${engine.isListOf("api_ids", apiIds)})`;
}

function rangeOf({ sinceMs, untilMs, after = behindAllIds }: EventsQuery): Pick<Walk, "before" | "from"> {
  const until = untilMs === undefined ? behindAllIds : earliestId("evt", untilMs);
  const from = sinceMs === undefined ? undefined : earliestId("evt", sinceMs);
  return { before: until < after ? until : after, from };
}

type EventRow = Omit<Schema["events"], "api_ids">;

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
