import { expect } from "vitest";
import { limitsOfOwner } from "../../src/domain/limits.ts";
import type { NewOwner, StoredOwner } from "../../src/domain/owner.ts";
import type { Store } from "../../src/store/store.ts";
import { createKey, createOwner, deleteOwner, done, updateOwner } from "../support/manage.ts";
import type { ContractCase } from "./contract-case.ts";
import { hardText } from "./key-cases.ts";
import { strict } from "./permit-asks.ts";
import { foundAs, refillRule, sampleKey, sampleRecord } from "./sample-keys.ts";

/** An owner without optional fields or a counter, except for those given. */
export function sampleOwner(id: string, given: Partial<NewOwner> = {}): NewOwner {
  const none = { apiIds: undefined, rateLimits: undefined, remaining: undefined, refill: undefined };
  return { id, enabled: true, meta: {}, ...none, ...given };
}

export const readOwner = ({ management }: Store, id: string) => management.read({ kind: "owner", id });

const rateLimits = [
  { name: "minute", rule: strict(5) },
  { name: "day", rule: { mode: "local", limit: 9, durationMs: 86_400_000 } },
] as const;

const full = {
  enabled: false,
  apiIds: ["b", "a", "c"],
  rateLimits,
  meta: { plan: hardText, n: [1] },
} satisfies Partial<NewOwner>;

const sampleOwners: readonly NewOwner[] = [
  sampleOwner("plain"),
  sampleOwner("full", full),
  sampleOwner(hardText, { apiIds: [hardText], remaining: 0 }),
  sampleOwner("漢".repeat(255), { apiIds: Array.from({ length: 100 }, (_, i) => `${"漢".repeat(250)}${i}`) }),
  sampleOwner("counted", { remaining: 3 }),
  sampleOwner("refilled", { remaining: 3, refill: refillRule({ interval: "monthly", amount: 5, carryOver: true }) }),
  // Each is part of the subject of another.
  sampleOwner("a/b", { remaining: 1, rateLimits }),
  sampleOwner("minute/a/b", { remaining: 2, rateLimits }),
];

/** The owner as it is read when it was just created. */
function storedAs({ remaining, refill, ...visible }: NewOwner, atMs: number, boundaryMs: number): StoredOwner {
  const rule = refill && { ...refill, refilledThroughMs: boundaryMs };
  const meter = { credited: remaining ?? 0, hour: 0, sinceMs: expect.any(Number), formerSpent: 0 };
  const counter = remaining === undefined ? undefined : { remaining, refill: rule, meter };
  return { ...visible, counter, createdAtMs: atMs, updatedAtMs: atMs, version: 1 };
}

export const ownerCases: readonly ContractCase[] = [
  {
    name: "an owner is answered, read and found as it was created",
    async run(store, clock) {
      clock.stepTo("2026-01-15T12:00:00.000Z");
      for (const [at, owner] of sampleOwners.entries()) {
        const stored = storedAs(owner, 100 + at, Date.parse("2026-01-01T00:00:00.000Z"));
        const outcome = await createOwner(store.management, owner, { atMs: 100 + at });
        expect(outcome).toEqual({ outcome: "done", changed: [], answer: stored });
      }
      for (const [at, owner] of sampleOwners.entries()) {
        const { id, enabled, apiIds, rateLimits: named, remaining, refill } = owner;
        expect(await readOwner(store, id)).toEqual(storedAs(owner, 100 + at, Date.parse("2026-01-01T00:00:00.000Z")));
        const [verified, counter] = [
          named && limitsOfOwner(id, named),
          remaining === undefined ? undefined : { remaining, refillInterval: refill?.interval },
        ];
        expect(await store.keys.findOwner(id)).toEqual({ id, enabled, apiIds, rateLimits: verified, counter });
      }
      for (const id of ["", "Plain", "plain ", "a", "漢"]) {
        expect([await readOwner(store, id), await store.keys.findOwner(id)], id).toEqual([undefined, undefined]);
      }
    },
  },
  {
    name: "many owners that are looked up at once are each found, also the same one several times",
    async run(store) {
      await Promise.all(sampleOwners.map((owner) => createOwner(store.management, owner)));
      const asked = [...sampleOwners, sampleOwner("none"), ...sampleOwners, sampleOwner("a,b")].map(({ id }) => id);
      const found = await Promise.all(asked.map((id) => store.keys.findOwner(id)));
      expect(found.map((owner) => owner?.id ?? "missing")).toEqual(
        asked.map((id) => (id === "none" || id === "a,b" ? "missing" : id)),
      );
    },
  },
  {
    name: "an owner that exists is not created again, also when several create it at once",
    async run(store) {
      const outcomes = await Promise.all(
        Array.from({ length: 10 }, (_, i) =>
          createOwner(store.management, sampleOwner("one", { remaining: i, rateLimits, meta: { i } })),
        ),
      );
      const refused = outcomes.filter(({ outcome }) => outcome !== "done");
      expect(refused).toEqual(Array.from({ length: 9 }, () => ({ outcome: "conflict", reason: "ownerExists" })));
      const [created] = outcomes.filter(({ outcome }) => outcome === "done");
      expect(created).toMatchObject({ answer: await readOwner(store, "one") });
      expect(await createOwner(store.management, sampleOwner("one"))).toEqual(refused[0]);
      expect(created).toMatchObject({ answer: await readOwner(store, "one") });
    },
  },
  {
    name: "a creation of an owner whose record is kept answers the record, and changes nothing",
    async run(store, clock) {
      const record = sampleRecord(clock, "lookup", "first");
      await createOwner(store.management, sampleOwner("one", full), { record });
      const before = await readOwner(store, "one");
      for (const id of ["one", "another"]) {
        const repeated = await createOwner(store.management, sampleOwner(id, { remaining: 5 }), { record });
        expect(repeated).toMatchObject({ outcome: "repeated", record: { targetId: record.targetId } });
      }
      expect(await readOwner(store, "one")).toEqual(before);
      expect(await readOwner(store, "another")).toBeUndefined();
    },
  },
  {
    name: "a key tells whether its owner has a record, as it is when the key is looked up",
    async run(store, clock) {
      const keys = ["one", "one", "two", undefined].map((ownerId) => sampleKey(clock, { ownerId }));
      for (const key of keys) await createKey(store.management, key);
      const hasRecord = () =>
        Promise.all(
          keys.map(async (key) => {
            const found = await store.keys.findByDigest(key.secretDigest);
            expect(found).toEqual({ ...foundAs(key), hasOwnerRecord: found?.hasOwnerRecord });
            return found?.hasOwnerRecord;
          }),
        );
      expect(await hasRecord()).toEqual([false, false, false, false]);
      await createOwner(store.management, sampleOwner("one"));
      expect(await hasRecord()).toEqual([true, true, false, false]);
      await createOwner(store.management, sampleOwner("two"));
      expect(await deleteOwner(store.management, "one")).toEqual(done);
      expect(await hasRecord()).toEqual([false, false, true, false]);
      const [, moved] = keys;
      const changes = { ownerId: "two" };
      const event = { id: "evt_moved", atMs: 1, actor: "root_test" };
      await store.management.change({ kind: "updateKey", id: moved?.id ?? "", changes, event });
      expect(await store.keys.findByDigest(moved?.secretDigest ?? "")).toMatchObject({ hasOwnerRecord: true });
    },
  },
  {
    name: "an update of an owner sets, removes and keeps its fields, and counts its version",
    async run(store) {
      await createOwner(store.management, sampleOwner("one", full));
      await createOwner(store.management, sampleOwner("other", full));
      const other = await readOwner(store, "other");
      const { enabled, apiIds, meta } = full;
      const second = [{ name: "second", rule: strict(2, 1000) }];
      const steps: [Parameters<typeof updateOwner>[2], Partial<StoredOwner>][] = [
        [{}, { enabled, apiIds, meta, rateLimits }],
        [{ enabled: true }, { enabled: true, apiIds, meta, rateLimits }],
        [
          { meta: {}, apiIds: ["z"] },
          { enabled: true, apiIds: ["z"], meta: {}, rateLimits },
        ],
        [{ rateLimits: second }, { enabled: true, apiIds: ["z"], meta: {}, rateLimits: second }],
        [
          { apiIds: null, rateLimits: null },
          { enabled: true, apiIds: undefined, meta: {}, rateLimits: undefined },
        ],
        [
          { enabled: false, apiIds: ["b", "a", "c"], rateLimits, meta: { ...meta } },
          { enabled, apiIds, meta, rateLimits },
        ],
      ];
      for (const [at, [changes, expected]] of steps.entries()) {
        const times = { createdAtMs: 1, updatedAtMs: 100 + at, version: 2 + at };
        const stored = { id: "one", counter: undefined, ...times, ...expected };
        const outcome = await updateOwner(store.management, "one", changes, { atMs: 100 + at });
        expect(outcome).toEqual({ outcome: "done", changed: [], answer: stored });
        expect(await readOwner(store, "one")).toEqual(stored);
        const limits = expected.rateLimits && limitsOfOwner("one", expected.rateLimits);
        const { enabled: isEnabled, apiIds: concerned } = stored;
        const found = { id: "one", enabled: isEnabled, apiIds: concerned, rateLimits: limits, counter: undefined };
        expect(await store.keys.findOwner("one")).toEqual(found);
      }
      expect(await readOwner(store, "other")).toEqual(other);
    },
  },
  {
    name: "an update or deletion of an owner with another version is a conflict, and of an unknown owner it is missing",
    async run(store, clock) {
      const { management } = store;
      await createOwner(management, sampleOwner("one", { ...full, remaining: 4 }));
      await createKey(management, sampleKey(clock, { ownerId: "unknown" }));
      const before = await readOwner(store, "one");
      const { position } = await store.changes.read(undefined);
      for (const ifVersion of [2, 3]) {
        const conflict = { outcome: "conflict", reason: "version" };
        const changes = { rateLimits: null, enabled: true, refill: refillRule() };
        expect(await updateOwner(management, "one", changes, { ifVersion })).toEqual(conflict);
        expect(await deleteOwner(management, "one", ifVersion)).toEqual(conflict);
        expect(await updateOwner(management, "unknown", changes, { ifVersion })).toEqual({ outcome: "missing" });
        expect(await deleteOwner(management, "unknown", ifVersion)).toEqual({ outcome: "missing" });
      }
      expect(await updateOwner(management, "unknown", { enabled: false })).toEqual({ outcome: "missing" });
      expect(await deleteOwner(management, "unknown")).toEqual({ outcome: "missing" });
      expect(await readOwner(store, "one")).toEqual(before);
      expect((await store.changes.read(position)).changed).toEqual([]);
      const updated = await updateOwner(management, "one", { enabled: true }, { ifVersion: 1 });
      expect(updated).toMatchObject({ outcome: "done", answer: { enabled: true, version: 2 } });
      expect(await deleteOwner(management, "one", 2)).toEqual(done);
    },
  },
  {
    name: "of several updates of one version of an owner at once, one is made",
    async run(store) {
      await createOwner(store.management, sampleOwner("one"));
      const outcomes = await Promise.all(
        Array.from({ length: 10 }, (_, i) => updateOwner(store.management, "one", { meta: { i } }, { ifVersion: 1 })),
      );
      expect(outcomes.filter(({ outcome }) => outcome === "done")).toHaveLength(1);
      expect(await readOwner(store, "one")).toMatchObject({ version: 2 });
    },
  },
  {
    name: "an owner that is stopped is disabled, and as it was otherwise",
    async run(store) {
      const { management } = store;
      await createOwner(management, sampleOwner("one", { ...full, enabled: true, remaining: 4 }));
      const before = await readOwner(store, "one");
      const stop = (id: string, ifVersion?: number) =>
        management.change({
          kind: "stopOwner",
          id,
          ifVersion,
          event: { id: "evt_stop", atMs: 9, actor: "root_test" },
        });
      expect(await stop("another")).toEqual({ outcome: "missing" });
      expect(await stop("one", 2)).toEqual({ outcome: "conflict", reason: "version" });
      expect(await stop("one", 1)).toMatchObject({ outcome: "done" });
      expect(await readOwner(store, "one")).toEqual({ ...before, enabled: false, updatedAtMs: 9, version: 2 });
      expect(await store.keys.findOwner("one")).toMatchObject({ enabled: false });
    },
  },
  {
    name: "an owner that keys name is not deleted unless they may stay, and the conflict says how many there are",
    async run(store, clock) {
      const { management } = store;
      await createOwner(management, sampleOwner("one", { ...full, remaining: 4 }));
      const before = await readOwner(store, "one");
      const event = { id: "evt_disabled", atMs: 1, actor: "root_test" };
      const made = [
        ["a", true],
        ["a", false],
        ["b", true],
      ] as const;
      for (const [apiId, enabled] of made)
        await createKey(management, sampleKey(clock, { apiId, enabled, ownerId: "one" }));
      await createKey(management, sampleKey(clock, { apiId: "a", ownerId: "another" }));
      const conflict = (keys: number) => ({ outcome: "conflict", reason: "ownerHasKeys", keys });
      expect(await deleteOwner(management, "one", undefined, {})).toEqual(conflict(3));
      expect(await deleteOwner(management, "one", 1, { apiIds: ["a"] })).toEqual(conflict(2));
      expect(await deleteOwner(management, "one", 1, { enabled: true })).toEqual(conflict(2));
      expect(await deleteOwner(management, "one", 1, { apiIds: ["a", "c"], enabled: true })).toEqual(conflict(1));
      expect(await deleteOwner(management, "one", 2, {})).toEqual({ outcome: "conflict", reason: "version" });
      expect(await deleteOwner(management, "another", undefined, {})).toEqual({ outcome: "missing" });
      expect(await readOwner(store, "one")).toEqual(before);
      expect(await deleteOwner(management, "one", undefined, { apiIds: ["c"] })).toEqual(done);
      expect(await readOwner(store, "one")).toBeUndefined();
      await createOwner(management, sampleOwner("two"));
      const last = sampleKey(clock, { ownerId: "two" });
      await createKey(management, last);
      expect(await deleteOwner(management, "two", undefined, { enabled: true })).toEqual(conflict(1));
      await management.change({ kind: "updateKey", id: last.id, changes: { enabled: false }, event });
      expect(await deleteOwner(management, "two", undefined, {})).toEqual(conflict(1));
      expect(await deleteOwner(management, "two", undefined, { enabled: true })).toEqual(done);
    },
  },
  {
    name: "a deleted owner is gone, its keys stay, and it can be created again",
    async run(store, clock) {
      const key = sampleKey(clock, { ownerId: "one", remaining: 2 });
      await createKey(store.management, key);
      await createOwner(store.management, sampleOwner("one", { ...full, remaining: 4 }));
      await createOwner(store.management, sampleOwner("other", full));
      expect(await deleteOwner(store.management, "one")).toEqual(done);
      expect(await readOwner(store, "one")).toBeUndefined();
      expect(await store.keys.findOwner("one")).toBeUndefined();
      expect(await store.keys.findByDigest(key.secretDigest)).toEqual(foundAs(key));
      expect(await readOwner(store, "other")).toMatchObject(full);
      const again = await createOwner(store.management, sampleOwner("one"));
      expect(again).toMatchObject({
        outcome: "done",
        answer: { version: 1, counter: undefined, rateLimits: undefined },
      });
    },
  },
];
