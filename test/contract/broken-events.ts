import type { StoredEvent } from "../../src/domain/event.ts";
import type { Command, IdempotencyRecord } from "../../src/store/commands.ts";
import type { Store } from "../../src/store/store.ts";
import { createMemoryStore } from "../support/memory-store.ts";
import { plainKey } from "../support/plain-key.ts";
import { type BrokenStore, eventLists, tidies } from "./break-store.ts";

/** How many events each cursor of a broken store has passed. */
const passed = (cursor: string | undefined) => Number(cursor ?? 0);

/** Shows every event in another way. */
function shows(mistake: string, change: (event: StoredEvent) => StoredEvent): BrokenStore {
  return eventLists(mistake, async (list, query) => {
    const page = await list(query);
    return { ...page, items: page.items.map(change) };
  });
}

/** Makes changes in another way. */
function changes(mistake: string, breakIt: (inner: Store, command: Command) => Command): BrokenStore {
  return {
    mistake,
    open(clock) {
      const inner = createMemoryStore(clock);
      const { management } = inner;
      const change = (command: Command, record?: IdempotencyRecord) =>
        management.change(breakIt(inner, command), record);
      return { ...inner, management: { ...management, change: change as typeof management.change } };
    },
  };
}

export const brokenEvents: readonly BrokenStore[] = [
  eventLists("pages events by number", async (list, query) => {
    const { items, cursor } = await list({ ...query, after: undefined, limit: passed(query.after) + query.limit });
    const page = { items: items.slice(passed(query.after)) };
    return cursor === undefined ? page : { ...page, cursor: `${passed(query.after) + query.limit}` };
  }),
  eventLists("begins a page with the last event of the one before", async (list, query) => {
    const page = await list(query);
    return page.cursor === undefined ? page : { ...page, cursor: `${page.cursor}0` };
  }),
  eventLists("shows the oldest events first", async (list, query) => {
    const page = await list(query);
    return { ...page, items: page.items.toReversed() };
  }),
  eventLists("gives a cursor where no event follows", async (list, query) => {
    const page = await list(query);
    const last = page.items.at(-1);
    return last === undefined ? page : { ...page, cursor: last.id };
  }),
  eventLists("forgets the cursor of a full page of events", async (list, query) => {
    const { items } = await list(query);
    return { items };
  }),
  eventLists("sorts ids of events by language", async (list, { after, ...query }) => {
    const { items } = await list({ ...query, limit: 1e6 });
    const sorted = items.toSorted((a, b) => b.id.localeCompare(a.id, "en"));
    const at = after === undefined ? 0 : sorted.findIndex(({ id }) => id === after) + 1;
    const page = sorted.slice(at, at + query.limit);
    return at + query.limit < sorted.length ? { items: page, cursor: page.at(-1)?.id as string } : { items: page };
  }),
  eventLists("ignores the target", (list, query) => list({ ...query, targetId: undefined })),
  eventLists("ignores the actor", (list, query) => list({ ...query, actor: undefined })),
  eventLists("ignores the method", (list, query) => list({ ...query, method: undefined })),
  eventLists("ignores the method where there is a target", (list, query) =>
    list(query.targetId === undefined ? query : { ...query, method: undefined }),
  ),
  eventLists("ignores when events begin", (list, query) => list({ ...query, sinceMs: undefined })),
  eventLists("ignores when events end", (list, query) => list({ ...query, untilMs: undefined })),
  eventLists("leaves out events of the first moment", (list, query) =>
    list({ ...query, sinceMs: query.sinceMs && query.sinceMs + 1 }),
  ),
  eventLists("shows events of the moment at which they end", (list, query) =>
    list({ ...query, untilMs: query.untilMs && query.untilMs + 1 }),
  ),
  eventLists("shows events of other APIs", (list, query) => list({ ...query, apiIds: undefined })),
  eventLists("shows events of other APIs where a target is named", (list, query) =>
    list(query.targetId === undefined ? query : { ...query, apiIds: undefined }),
  ),
  eventLists("takes no APIs for all", (list, query) =>
    list(query.apiIds?.length === 0 ? { ...query, apiIds: undefined } : query),
  ),
  eventLists("shows events of the first API only", (list, query) =>
    list({ ...query, apiIds: query.apiIds?.slice(0, 1) }),
  ),
  eventLists("shows events of keys that are there", async (list, query, { management }) => {
    const page = await list(query);
    const keys = page.items.map(({ targetId }) => management.read({ kind: "key", id: targetId }));
    const isThere = await Promise.all(keys);
    return { ...page, items: page.items.filter((_, i) => isThere[i] !== undefined) };
  }),
  shows("names no fields", (event) => ({ ...event, fields: [] })),
  shows("has the version of before the change", (event) => ({ ...event, version: (event.version ?? 1) - 1 })),
  shows("names another actor", (event) => ({ ...event, actor: "root_0" })),
  changes("calls every update of a counter one of the key", (_, command) =>
    command.kind === "updateRemaining"
      ? { ...command, kind: "updateKey", changes: { enabled: true, meta: {} } }
      : command,
  ),
  {
    mistake: "has an event of a change that was not made",
    open(clock) {
      const inner = createMemoryStore(clock);
      const { management } = inner;
      const change = async (command: Command, record?: IdempotencyRecord) => {
        const outcome = await management.change(command, record);
        if (outcome.outcome !== "done") {
          const { event } = command;
          const key = { id: event.id, apiId: "api", start: "s", createdAtMs: 1, secretDigest: event.id };
          await management.change({ kind: "createKey", created: { ...plainKey, ...key }, event });
        }
        return outcome;
      };
      return { ...inner, management: { ...management, change: change as typeof management.change } };
    },
  },
  tidies(
    "tidies events of the first moment that is to be kept",
    (inner) =>
      (nowMs, { eventsBeforeMs: beforeMs } = {}) =>
        inner(nowMs, { eventsBeforeMs: beforeMs && beforeMs + 1 }),
  ),
  tidies("tidies no events", (inner) => (nowMs) => inner(nowMs)),
  tidies(
    "tidies all events where no moment is given",
    (inner) =>
      (nowMs, { eventsBeforeMs = nowMs } = {}) =>
        inner(nowMs, { eventsBeforeMs }),
  ),
];
