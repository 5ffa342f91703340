import fc from "fast-check";
import { expect } from "vitest";
import type { StoredEvent } from "../../src/domain/event.ts";
import { formatId, idRandomLength } from "../../src/domain/id.ts";
import type { NewEvent } from "../../src/store/commands.ts";
import type { EventsQuery } from "../../src/store/queries.ts";
import type { Store } from "../../src/store/store.ts";
import { listEventPages } from "../support/manage.ts";
import { createMemoryStore } from "../support/memory-store.ts";
import type { TestClock } from "../support/test-clock.ts";
import type { ContractCase } from "./contract-case.ts";
import { sampleKey, sampleRecord } from "./sample-keys.ts";

type Filters = Omit<EventsQuery, "kind" | "limit" | "after">;

let made = 0;

/** An event of that moment, behind those that were made before it. */
function eventAt(atMs: number, actor = "root_test"): NewEvent {
  const random = Buffer.alloc(idRandomLength);
  random.writeUInt32BE(++made, idRandomLength - 4);
  return { id: formatId("evt", atMs, random), atMs, actor };
}

/** A change of a key as a whole: its creation, or one of its name. */
interface Change {
  readonly keyId: string;
  readonly apiId: string;
  readonly isNew: boolean;
  readonly event: NewEvent;
}

async function make({ management }: Store, clock: TestClock, { keyId, apiId, isNew, event }: Change): Promise<void> {
  const key = sampleKey(clock, { id: keyId, apiId, secretDigest: `digest of ${keyId}` });
  const outcome = await (isNew
    ? management.change({ kind: "createKey", created: key, event })
    : management.change({ kind: "updateKey", id: keyId, changes: { name: `name of ${event.id}` }, event }));
  expect(outcome.outcome).toBe("done");
}

/** So many keys of each API, made one millisecond after the other from then on, and changed in that order then. */
function changesOf(fromMs: number, apiIds: readonly string[], keysEach: number): readonly Change[] {
  const number = ++made;
  const keys = apiIds.flatMap((apiId) =>
    Array.from({ length: keysEach }, (_, i) => ({ keyId: `key_${number}_${apiId}_${i}`, apiId })),
  );
  return [...keys.map((key) => ({ ...key, isNew: true })), ...keys.map((key) => ({ ...key, isNew: false }))].map(
    (change, i) => ({ ...change, event: eventAt(fromMs + i) }),
  );
}

async function eventsOf(store: Store, filters: Filters, limit?: number): Promise<readonly StoredEvent[]> {
  const pages = await listEventPages(store.management, filters, limit === undefined ? {} : { limit });
  return pages.flatMap(({ items }) => items);
}

async function idsOf(store: Store, filters: Filters, limit?: number): Promise<readonly string[]> {
  return (await eventsOf(store, filters, limit)).map(({ id }) => id);
}

const newestFirst = (changes: readonly Change[]) => changes.map(({ event }) => event.id).reverse();

const anyFilters = fc.record(
  {
    method: fc.constantFrom("keys.createKey", "keys.updateKey", "keys.deleteKey"),
    target: fc.integer({ min: 0, max: 11 }),
    since: fc.integer({ min: -1, max: 12 }),
    until: fc.integer({ min: -1, max: 12 }),
    apiIds: fc.constantFrom([], ["a"], ["b"], ["a", "c"], ["a", "b", "c"], ["none"]),
  },
  { requiredKeys: [] },
);

export const eventCases: readonly ContractCase[] = [
  {
    name: "every change of a key leaves one event that says which fields it changed, and stays when the key is gone",
    async run({ management, ...store }, clock) {
      const key = sampleKey(clock, { apiId: "the api", remaining: 5 });
      const keyId = key.id;
      const now = clock.nowMs();
      const events = Array.from({ length: 4 }, (_, i) => eventAt(now + i)) as [NewEvent, NewEvent, NewEvent, NewEvent];
      const limits = { rateLimit: null, rateLimits: null, costMax: 9 };
      const changes = { name: "secret name", expiresAtMs: null, ...limits, enabled: undefined };
      const fields = ["name", "expires", "ratelimit", "ratelimits", "costMax"];
      await management.change({ kind: "createKey", created: key, event: events[0] });
      await management.change({ kind: "updateKey", id: keyId, changes, event: events[1] });
      await management.change({ kind: "updateRemaining", id: keyId, op: "set", value: 7, event: events[2] });
      await management.change({ kind: "deleteKey", id: keyId, event: events[3] });
      const stored = await eventsOf({ management, ...store }, { targetId: keyId });
      const common = { targetId: keyId, apiId: "the api", actor: stored[0]?.actor };
      expect(stored).toStrictEqual([
        { ...events[3], ...common, method: "keys.deleteKey", fields: [], version: 4 },
        { ...events[2], ...common, method: "keys.updateRemaining", fields: ["remaining"], version: 3 },
        { ...events[1], ...common, method: "keys.updateKey", fields, version: 2 },
        { ...events[0], ...common, method: "keys.createKey", fields: [], version: 1 },
      ]);
    },
  },
  {
    name: "a change that is not made leaves no event",
    async run(store, clock) {
      const { management } = store;
      const key = sampleKey(clock, { remaining: 1 });
      const keyId = key.id;
      const [created, repeated] = [eventAt(clock.nowMs()), eventAt(clock.nowMs())];
      const record = sampleRecord(clock, "lookup", "create");
      await management.change({ kind: "createKey", created: key, event: created }, record);
      await management.change({ kind: "createKey", created: sampleKey(clock), event: repeated }, record);
      const event = () => eventAt(clock.nowMs());
      const name = { name: "another" };
      await management.change({ kind: "updateKey", id: keyId, ifVersion: 2, changes: name, event: event() });
      await management.change({ kind: "updateKey", id: "key_none", changes: name, event: event() });
      await management.change({ kind: "updateRemaining", id: keyId, op: "decrement", value: 2, event: event() });
      await management.change({ kind: "updateRemaining", id: "key_none", op: "set", value: 2, event: event() });
      await management.change({ kind: "deleteKey", id: "key_none", event: event() });
      expect(await idsOf(store, {})).toEqual([created.id]);
    },
  },
  {
    name: "pages of any size show all events once, newest first, and only the last has no cursor",
    async run(store, clock) {
      const changes = changesOf(clock.nowMs(), ["api"], 6);
      for (const change of changes) await make(store, clock, change);
      for (const limit of [1, 2, 3, 5, 6, 11, 12, 13, 100]) {
        const pages = await listEventPages(store.management, {}, { limit });
        const shown = pages.flatMap(({ items }) => items.map(({ id }) => id));
        expect(shown, `${limit}`).toEqual(newestFirst(changes));
        expect(pages.map(({ items }) => items.length <= limit)).not.toContain(false);
        expect(pages.length, `pages of ${limit}`).toBe(Math.ceil(12 / limit));
      }
    },
  },
  {
    name: "ids of events are in the order of their bytes",
    async run(store, clock) {
      const base = eventAt(clock.nowMs());
      const changes = ["0", "9", "A", "B", "Z", "a", "b", "z"].map((end, i) => ({
        keyId: `key_${base.id}_${i}`,
        apiId: "api",
        isNew: true,
        event: { ...base, id: `${base.id.slice(0, -1)}${end}` },
      }));
      for (const change of changes.toReversed()) await make(store, clock, change);
      for (const filters of [{}, { method: "keys.createKey" }, { apiIds: ["api", "another"] }]) {
        expect(await idsOf(store, filters, 3)).toEqual(newestFirst(changes));
      }
    },
  },
  {
    name: "a filter shows exactly the events that it matches",
    async run(store, clock) {
      const fromMs = clock.nowMs();
      const changes = changesOf(fromMs, ["a", "b"], 2);
      for (const change of changes) await make(store, clock, change);
      const idsWhere = (test: (change: Change) => boolean) => newestFirst(changes.filter(test));
      const [{ keyId: targetId }] = changes as readonly [Change];
      for (const limit of [1, 100]) {
        const ids = (filters: Filters) => idsOf(store, filters, limit);
        expect(await ids({ targetId })).toEqual(idsWhere(({ keyId }) => keyId === targetId));
        expect(await ids({ targetId: "key_none" })).toEqual([]);
        expect(await ids({ method: "keys.createKey" })).toEqual(idsWhere(({ isNew }) => isNew));
        expect(await ids({ targetId, method: "keys.updateKey" })).toHaveLength(1);
        expect(await ids({ method: "keys.deleteKey" })).toEqual([]);
        expect(await ids({ sinceMs: fromMs + 3 })).toEqual(idsWhere(({ event }) => event.atMs >= fromMs + 3));
        expect(await ids({ untilMs: fromMs + 3 })).toEqual(idsWhere(({ event }) => event.atMs < fromMs + 3));
        expect(await ids({ sinceMs: fromMs + 2, untilMs: fromMs + 3 })).toHaveLength(1);
        expect(await ids({ targetId, sinceMs: fromMs + 1 })).toHaveLength(1);
        expect(await ids({ targetId, untilMs: fromMs + 1 })).toHaveLength(1);
        expect(await ids({ sinceMs: fromMs + 3, untilMs: fromMs + 3 })).toEqual([]);
        expect(await ids({ apiIds: ["b"] })).toEqual(idsWhere(({ apiId }) => apiId === "b"));
        expect(await ids({ apiIds: ["b", "a"] })).toEqual(newestFirst(changes));
        expect(await ids({ apiIds: ["b", "c"] })).toEqual(idsWhere(({ apiId }) => apiId === "b"));
        expect(await ids({ apiIds: [] })).toEqual([]);
        expect(await ids({ targetId, apiIds: ["b"] })).toEqual([]);
        expect(await ids({ targetId, apiIds: [] })).toEqual([]);
      }
    },
  },
  {
    name: "while changes are made and events removed, no event that was there throughout is left out or shown twice",
    async run(store, clock) {
      const changes = changesOf(clock.nowMs(), ["api"], 8);
      for (const change of changes) await make(store, clock, change);
      const later = [...changesOf(clock.nowMs() + 1000, ["api"], 8)];
      const between = async () => {
        const change = later.shift();
        if (change !== undefined) await make(store, clock, change);
        await store.tidy(clock.nowMs(), { eventsBeforeMs: clock.nowMs() + 4 });
      };
      const pages = await listEventPages(store.management, {}, { limit: 3, between });
      const shown = pages.flatMap(({ items }) => items.map(({ id }) => id));
      expect(shown).toEqual(newestFirst(changes.slice(4)));
    },
  },
  {
    name: "tidying removes the events of before a moment, and no others, and none if no moment is given",
    async run(store, clock) {
      const fromMs = clock.nowMs();
      const changes = changesOf(fromMs, ["api"], 3);
      for (const change of changes) await make(store, clock, change);
      await store.tidy(fromMs + 2 ** 40);
      expect(await idsOf(store, {})).toEqual(newestFirst(changes));
      await store.tidy(fromMs, { eventsBeforeMs: fromMs + 4 });
      expect(await idsOf(store, {})).toEqual(newestFirst(changes.slice(4)));
      await store.tidy(fromMs, { eventsBeforeMs: fromMs + 2 ** 40 });
      expect(await idsOf(store, {})).toEqual([]);
    },
  },
  {
    name: "all pages of any list of events are together what the plain store lists",
    async run(store, clock) {
      const plain = createMemoryStore(clock);
      const fromMs = clock.nowMs();
      const changes = changesOf(fromMs, ["a", "b", "c"], 2);
      for (const change of changes) await Promise.all([store, plain].map((each) => make(each, clock, change)));
      await fc.assert(
        fc.asyncProperty(anyFilters, fc.constantFrom(1, 3, 100), async (given, limit) => {
          const { target, since, until, ...rest } = given;
          const filters = {
            ...rest,
            ...(target !== undefined && { targetId: changes[target]?.keyId }),
            ...(since !== undefined && { sinceMs: fromMs + since }),
            ...(until !== undefined && { untilMs: fromMs + until }),
          };
          expect(await idsOf(store, filters, limit)).toEqual(await idsOf(plain, filters));
        }),
        { numRuns: 60 },
      );
    },
  },
];

/** Where the check of the root key sets the actor, a change cannot choose it. */
export const eventActorCases: readonly ContractCase[] = [
  {
    name: "an event names the root key that made the change, and is found by it",
    async run(store, clock) {
      const changes = changesOf(clock.nowMs(), ["a", "b"], 2).map((change, i) => ({
        ...change,
        event: { ...change.event, actor: i % 3 === 0 ? "root_1" : "root_2" },
      }));
      for (const change of changes) await make(store, clock, change);
      for (const limit of [1, 100]) {
        for (const actor of ["root_1", "root_2"]) {
          const own = changes.filter(({ event }) => event.actor === actor);
          const events = await eventsOf(store, { actor }, limit);
          expect(events.map(({ id }) => id)).toEqual(newestFirst(own));
          expect(new Set(events.map((event) => event.actor))).toEqual(new Set([actor]));
          const ofA = own.filter(({ apiId }) => apiId === "a");
          expect(await idsOf(store, { actor, apiIds: ["a"] }, limit)).toEqual(newestFirst(ofA));
          const created = own.filter(({ isNew }) => isNew);
          expect(await idsOf(store, { actor, method: "keys.createKey" }, limit)).toEqual(newestFirst(created));
        }
        expect(await idsOf(store, { actor: "root_3" }, limit)).toEqual([]);
      }
    },
  },
];
