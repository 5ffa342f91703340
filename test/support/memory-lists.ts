import type { StoredEvent } from "../../src/domain/event.ts";
import type { NewKey, StoredKey } from "../../src/domain/key.ts";
import type { EventsQuery, KeysQuery, Page } from "../../src/store/queries.ts";

/* The lists of the plain store. */

/** `storedKey`: a key as it is read. */
export function listKeys(
  keys: Iterable<NewKey>,
  query: KeysQuery,
  storedKey: (keyId: string) => StoredKey | undefined,
): Page<StoredKey> {
  const { apiId, ownerId, environment, enabled, expiresBeforeMs, search, apiIds, limit, after } = query;
  const ids = [...keys]
    .filter((key) => apiId === undefined || key.apiId === apiId)
    .filter((key) => apiIds?.includes(key.apiId) ?? true)
    .filter((key) => ownerId === undefined || key.ownerId === ownerId)
    .filter((key) => environment === undefined || key.environment === environment)
    .filter((key) => enabled === undefined || key.enabled === enabled)
    .filter(({ expiresAtMs = Infinity }) => expiresBeforeMs === undefined || expiresAtMs < expiresBeforeMs)
    .filter(({ name, start }) => search === undefined || name?.startsWith(search) || start.startsWith(search))
    .filter(({ id }) => after === undefined || id < after)
    .map(({ id }) => id)
    .sort()
    .reverse();
  const page = ids.slice(0, limit);
  const shown = page.map((id) => storedKey(id) as StoredKey);
  return { items: shown, cursor: ids.length > limit ? page.at(-1) : undefined };
}

/** An event of an owner may concern several APIs. */
export interface KeptEvent extends StoredEvent {
  readonly apiIds?: readonly string[] | undefined;
}

export function listEvents(events: Iterable<KeptEvent>, query: EventsQuery): Page<StoredEvent> {
  const { targetId, actor, method, sinceMs = 0, untilMs = Infinity, apiIds, limit, after } = query;
  const found = [...events]
    .filter((event) => targetId === undefined || event.targetId === targetId)
    .filter((event) => actor === undefined || event.actor === actor)
    .filter((event) => method === undefined || event.method === method)
    .filter(({ apiId, apiIds: all = [apiId] }) => apiIds === undefined || all.every((id) => id && apiIds.includes(id)))
    .filter(({ atMs }) => atMs >= sinceMs && atMs < untilMs)
    .filter(({ id }) => after === undefined || id < after)
    .sort((a, b) => (a.id < b.id ? 1 : -1));
  const page = found.slice(0, limit).map(({ apiIds: _, ...event }) => event);
  return { items: page, cursor: found.length > limit ? page.at(-1)?.id : undefined };
}
