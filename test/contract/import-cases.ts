import { expect } from "vitest";
import type { NewKey } from "../../src/domain/key.ts";
import type { ImportedKey } from "../../src/store/commands.ts";
import type { Store } from "../../src/store/store.ts";
import { createKey, importKeys, rerollKey, stopApi, testEvent } from "../support/manage.ts";
import { ones } from "../support/ones.ts";
import type { TestClock } from "../support/test-clock.ts";
import type { ContractCase } from "./contract-case.ts";
import { ask } from "./permit-asks.ts";
import { foundAs, refillRule, sampleKey, sampleRecord } from "./sample-keys.ts";
import { charge, created, settled } from "./usage-cases.ts";

function sampleImport(clock: TestClock, given: Partial<NewKey> = {}): ImportedKey {
  return { ...sampleKey(clock, given), eventId: testEvent().id };
}

function imported(...keys: readonly ImportedKey[]) {
  return { outcome: "done", changed: [], answer: { keyIds: expect.toSatisfy(sameIds(keys)) } };
}

const sameIds = (keys: readonly ImportedKey[]) => (ids: readonly string[]) =>
  [...ids].sort().join() ===
  keys
    .map(({ id }) => id)
    .sort()
    .join();

function foundImport({ eventId: _, ...key }: ImportedKey) {
  return foundAs(key);
}

const hasImports = async ({ changes }: Store) => (await changes.read(undefined)).hasImportedKeys;

export const importCases: readonly ContractCase[] = [
  {
    name: "imported keys are found with everything that they were given, counters and windows included",
    async run(store, clock) {
      clock.stepTo("2026-01-15T12:00:00.000Z");
      const plain = sampleImport(clock, { start: "" });
      const full = sampleImport(clock, {
        ownerId: "owner",
        name: "name",
        meta: { plan: ["pro", "'\"\\"] },
        enabled: false,
        expiresAtMs: clock.nowMs() + 1000,
        rateLimit: { mode: "strict", limit: 3, durationMs: 60_000 },
        rateLimits: [
          { name: "minute", rule: { mode: "strict", limit: 3, durationMs: 60_000 } },
          { name: "a.B-_9", rule: { mode: "local", limit: 5, durationMs: 1000 } },
        ],
        costMax: 7,
        environment: "production",
        permissions: ["docs.*", "admin"],
        ipAllow: ["10.0.0.0/8", "2001:db8::1"],
        remaining: 4,
        refill: refillRule({ carryOver: true }),
      });
      const local = sampleImport(clock, { rateLimit: { mode: "local", limit: 9, durationMs: 5000 }, remaining: 0 });
      expect(await importKeys(store.management, [plain, full, local])).toEqual(imported(plain, full, local));
      for (const key of [plain, full, local])
        expect(await store.keys.findByDigest(key.secretDigest)).toEqual(foundImport(key));
      expect(await store.management.read({ kind: "key", id: plain.id })).toMatchObject({
        start: "",
        version: 1,
        createdAtMs: plain.createdAtMs,
        counter: undefined,
        secrets: [{ start: "", createdAtMs: plain.createdAtMs }],
      });
      expect(await ask(store, full, { waiting: ones(3) })).toMatchObject({ granted: 3 });
      expect(await charge(store, full, 1)).toEqual(settled(1, 3));
      clock.stepTo("2026-01-16T00:00:00.000Z");
      expect(await charge(store, full, 1)).toEqual(settled(1, 12));
      expect(await charge(store, local, 1)).toEqual(settled(0, 0));
      expect(await charge(store, plain, 1)).toEqual({ outcome: "missing" });
    },
  },
  {
    name: "a digest that exists, of a key or of a secret that is being replaced, is left out and changes nothing; others are stored",
    async run(store, clock) {
      const existing = await created(store, clock, { remaining: 7, ownerId: "first" });
      const replaced = await created(store, clock);
      await rerollKey(store.management, replaced.id, { secretDigest: "new", overlapMs: 1000, event: testEvent() });
      const again = [existing.secretDigest, replaced.secretDigest, "new"].map((secretDigest) =>
        sampleImport(clock, { secretDigest, remaining: 1, rateLimit: { mode: "strict", limit: 1, durationMs: 1000 } }),
      );
      const fresh = sampleImport(clock, { secretDigest: "fresh", remaining: 2 });
      const twice = sampleImport(clock, { secretDigest: "fresh", remaining: 3 });
      expect(await importKeys(store.management, [...again, fresh, twice])).toEqual(imported(fresh));
      expect(await store.keys.findByDigest("fresh")).toEqual(foundImport(fresh));
      expect(await store.keys.findByDigest(existing.secretDigest)).toEqual(foundAs(existing));
      expect(await store.keys.findByDigest(replaced.secretDigest)).toMatchObject({ id: replaced.id });
      for (const { id } of [...again, twice]) {
        expect(await store.management.read({ kind: "key", id })).toBeUndefined();
        expect(await charge(store, { id } as NewKey, 1)).toEqual({ outcome: "missing" });
      }
    },
  },
  {
    name: "a digest that exists in another API is left out of an import as one that exists in its own, and stays there",
    async run(store, clock) {
      const [own, foreign] = [await created(store, clock), await created(store, clock, { apiId: "foreign" })];
      for (const { secretDigest } of [own, foreign]) {
        const record = sampleRecord(clock, `import of ${secretDigest}`, secretDigest);
        expect(await importKeys(store.management, [sampleImport(clock, { secretDigest })], record)).toEqual(imported());
      }
      expect(await store.keys.findByDigest(foreign.secretDigest)).toEqual(foundAs(foreign));
    },
  },
  {
    name: "an import into an API that was stopped, or into an unknown one that must exist, is refused as a whole and leaves nothing",
    async run(store, clock) {
      const { management } = store;
      await createKey(management, sampleKey(clock, { apiId: "stopped" }));
      await stopApi(management, "stopped");
      const refusals = [
        ["stopped", false, { outcome: "conflict", reason: "apiIsDeleting" }],
        ["stopped", true, { outcome: "conflict", reason: "apiIsDeleting" }],
        ["unknown", true, { outcome: "missing" }],
      ] as const;
      for (const [apiId, apiMustExist, refused] of refusals) {
        const given = { apiId, remaining: 1, rateLimit: { mode: "strict", limit: 1, durationMs: 1000 } } as const;
        const keys = [sampleImport(clock, given), sampleImport(clock, given)];
        const command = { kind: "importKeys", apiId, keys, apiMustExist, event: testEvent() } as const;
        // Nor is an answer kept that was not given: the second one is refused alike.
        const record = sampleRecord(clock, `import into ${apiId}`, "refused");
        for (const _ of [1, 2]) expect(await management.change(command, record)).toEqual(refused);
        for (const key of keys) {
          expect(await store.keys.findByDigest(key.secretDigest)).toBeUndefined();
          expect(await management.read({ kind: "key", id: key.id })).toBeUndefined();
          expect(await charge(store, key, 1)).toEqual({ outcome: "missing" });
        }
      }
      expect(await management.read({ kind: "api", id: "unknown" })).toBeUndefined();
      const query = { kind: "events", method: "keys.importKeys", limit: 10 } as const;
      expect(await management.read(query)).toEqual({ items: [] });
      expect(await hasImports(store)).toBe(false);
    },
  },
  {
    name: "an import creates its API, unless APIs must exist; into one that exists it is made either way",
    async run(store, clock) {
      const { management } = store;
      for (const apiMustExist of [false, true]) {
        const key = sampleImport(clock, { apiId: "new" });
        const command = { kind: "importKeys", apiId: "new", keys: [key], apiMustExist, event: testEvent() } as const;
        expect(await management.change(command)).toEqual(imported(key));
        expect(await store.keys.findByDigest(key.secretDigest)).toEqual(foundImport(key));
        expect(await management.read({ kind: "api", id: "new" })).toMatchObject({ id: "new", version: 1 });
      }
    },
  },
  {
    name: "the feed says for ever that keys were imported, from the first one on",
    async run(store, clock) {
      const existing = await created(store, clock);
      expect(await hasImports(store)).toBe(false);
      const { position } = await store.changes.read(undefined);
      await importKeys(store.management, [sampleImport(clock, { secretDigest: existing.secretDigest })]);
      expect(await hasImports(store)).toBe(false);
      const first = sampleImport(clock);
      await importKeys(store.management, [first]);
      expect(await store.changes.read(position)).toMatchObject({ changed: [], hasImportedKeys: true });
      await store.management.change({ kind: "deleteKey", id: first.id, event: testEvent() });
      await store.tidy(clock.nowMs());
      expect(await hasImports(store)).toBe(true);
    },
  },
  {
    name: "each imported key has an event of its own, and one that was left out has none",
    async run(store, clock) {
      const existing = await created(store, clock);
      const left = sampleImport(clock, { secretDigest: existing.secretDigest });
      const keys = [sampleImport(clock), left, sampleImport(clock)];
      await importKeys(store.management, keys);
      const query = { kind: "events", method: "keys.importKeys", limit: 10 } as const;
      const { items: events } = await store.management.read(query);
      expect(new Map(events.map(({ id, targetId }) => [id, targetId]))).toEqual(
        new Map(keys.filter((key) => key !== left).map(({ id, eventId }) => [eventId, id])),
      );
      expect(events[0]).toMatchObject({ apiId: keys[0]?.apiId, fields: [], version: 1 });
    },
  },
  {
    name: "a repeated import stores nothing and answers the kept record, also where nothing was stored at first",
    async run(store, clock) {
      const existing = await created(store, clock);
      const nothing = sampleRecord(clock, "nothing", "nothing stored");
      const same = () => [sampleImport(clock, { secretDigest: existing.secretDigest })];
      expect(await importKeys(store.management, same(), nothing)).toEqual(imported());
      expect(await importKeys(store.management, same(), nothing)).toMatchObject({ outcome: "repeated" });
      const record = sampleRecord(clock, "some", "first");
      const [first, second] = [sampleImport(clock), sampleImport(clock)];
      await importKeys(store.management, [first], record);
      expect(await importKeys(store.management, [second], sampleRecord(clock, "some", "second"))).toMatchObject({
        outcome: "repeated",
        record: { sealedAnswer: record.sealedAnswer },
      });
      expect(await store.keys.findByDigest(second.secretDigest)).toBeUndefined();
    },
  },
  {
    name: "100 keys are imported at once, and of imports of the same digests at once each digest is stored once",
    async run(store, clock) {
      const digests = Array.from({ length: 100 }, (_, i) => `digest ${i}`);
      const several = Array.from({ length: 3 }, (_, at) =>
        digests.map((_, i) =>
          sampleImport(clock, { secretDigest: digests[(i * 7 + at * 31) % 100] as string, remaining: 1 }),
        ),
      );
      const outcomes = await Promise.all(several.map((keys) => importKeys(store.management, keys)));
      const stored = outcomes.flatMap((outcome) => (outcome.outcome === "done" ? (outcome.answer?.keyIds ?? []) : []));
      expect(stored).toHaveLength(100);
      for (const digest of digests) {
        const key = await store.keys.findByDigest(digest);
        expect(stored).toContain(key?.id);
      }
    },
  },
];
