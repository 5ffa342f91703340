import type { StoredEvent } from "../../domain/event.ts";
import { earliestId } from "../../domain/id.ts";
import type { EventsQuery, Page } from "../queries.ts";
import { behindAllIds, type FoundRow, splitByApi, type Walk, walkPage } from "./pages.ts";
import { sql } from "./sql.ts";
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
  const walk: Walk = {
    table: "events",
    idColumn: "id",
    groups: apiIds === undefined ? [group] : splitByApi(group, apiIds),
    ...rangeOf(query),
    columns,
    filters: others.map(({ column, value }) => ({ columns: [], condition: sql`${sql.ref(column)} = ${value}` })),
    walkMax,
    limit: query.limit,
  };
  // An event of an owner may concern other APIs too.
  const isOnly = (ids: readonly string[]) => sql`(api_ids IS NULL OR ${engine.isListOf("api_ids", ids)})`;
  const only = apiIds === undefined ? [] : [{ columns: ["api_ids"], condition: isOnly(apiIds) }];
  const filtered = { ...walk, filters: [...walk.filters, ...only] };
  const { rows, cursor } = await walkPage<EventRow>(engine, filtered, { columns });
  return { items: rows.map(toStoredEvent), cursor };
}

function rangeOf({ sinceMs, untilMs, after = behindAllIds }: EventsQuery): Pick<Walk, "before" | "from"> {
  const until = untilMs === undefined ? behindAllIds : earliestId("evt", untilMs);
  const from = sinceMs === undefined ? undefined : earliestId("evt", sinceMs);
  return { before: until < after ? until : after, from };
}

interface EventRow extends FoundRow {
  readonly at_ms: number;
  readonly method: string;
  readonly actor: string;
  readonly target_id: string;
  readonly api_id: string | null;
  readonly fields: string;
  readonly version: number | null;
}

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
