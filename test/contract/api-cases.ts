import { expect } from "vitest";
import type { StoredApi } from "../../src/domain/api.ts";
import type { KeyDefaults } from "../../src/domain/fields.ts";
import type { Store } from "../../src/store/store.ts";
import { createApi, createKey, done, testEvent, updateApi } from "../support/manage.ts";
import type { ContractCase } from "./contract-case.ts";
import { hardText } from "./key-cases.ts";
import { refillRule, sampleKey, sampleRecord } from "./sample-keys.ts";

const full: KeyDefaults = {
  prefix: "live",
  byteLength: 32,
  rateLimit: { mode: "strict", limit: 10, durationMs: 60_000 },
  remaining: 0,
  refill: refillRule({ interval: "monthly", amount: 5, carryOver: true }),
  costMax: 100,
};

export const readApi = ({ management }: Store, id: string) => management.read({ kind: "api", id });

/** The ids of all pages, in order. */
export async function listedApis(
  { management }: Store,
  limit: number,
  apiIds?: readonly string[],
): Promise<string[][]> {
  const pages: string[][] = [];
  let after: string | undefined;
  do {
    const page = await management.read({ kind: "apis", limit, after, apiIds });
    pages.push(page.items.map(({ id }) => id));
    after = page.cursor;
  } while (after !== undefined && pages.length < 100);
  return pages;
}

export const apiCases: readonly ContractCase[] = [
  {
    name: "an API is answered and read as it was created",
    async run(store, clock) {
      const created: [string, Partial<StoredApi>][] = [
        ["plain", {}],
        [hardText, { name: hardText, defaults: full, ownersRequired: true }],
        ["漢".repeat(255), { defaults: { prefix: "p" } }],
      ];
      for (const [id, { name, defaults = {}, ownersRequired = false }] of created) {
        const atMs = clock.nowMs();
        const given = { name, defaults, ownersRequired };
        const stored = { id, ...given, createdAtMs: atMs, updatedAtMs: atMs, version: 1 };
        const outcome = await createApi(store.management, id, { ...given, atMs });
        expect(outcome).toEqual({ outcome: "done", changed: [], answer: stored });
        expect(await readApi(store, id)).toEqual(stored);
      }
      for (const id of ["", "Plain", "plain ", "漢"]) expect(await readApi(store, id), id).toBeUndefined();
      const defaultsOf = async (id: string) => (await readApi(store, id))?.defaults;
      expect([await defaultsOf(hardText), await defaultsOf("plain")]).toEqual([full, {}]);
      expect(await defaultsOf("unknown")).toBeUndefined();
    },
  },
  {
    name: "an API that exists is not created again, whether it was created by itself or by its first key",
    async run(store, clock) {
      await createApi(store.management, "one", { name: "first", defaults: full });
      await createKey(store.management, sampleKey(clock, { apiId: "two" }));
      for (const id of ["one", "two"]) {
        const before = await readApi(store, id);
        const again = await createApi(store.management, id, { name: "second" });
        expect(again).toEqual({ outcome: "conflict", reason: "apiExists" });
        expect(await readApi(store, id)).toEqual(before);
      }
    },
  },
  {
    name: "the first key of an API creates it without name and defaults, and no key changes it",
    async run(store, clock) {
      const key = sampleKey(clock, { apiId: "new", name: "a name of the key" });
      await createKey(store.management, key);
      const atMs = key.createdAtMs;
      const plain = { id: "new", name: undefined, defaults: {}, ownersRequired: false };
      const stored = { ...plain, createdAtMs: atMs, updatedAtMs: atMs, version: 1 };
      expect(await readApi(store, "new")).toEqual(stored);
      clock.advance(1000);
      await createKey(store.management, sampleKey(clock, { apiId: "new" }));
      expect(await readApi(store, "new")).toEqual(stored);
    },
  },
  {
    name: "where APIs must exist, a key for an unknown one is missing and leaves nothing; others are stored",
    async run(store, clock) {
      const create = (apiId: string) => {
        const key = sampleKey(clock, {
          apiId,
          remaining: 1,
          rateLimit: { mode: "strict", limit: 1, durationMs: 1000 },
        });
        const command = { kind: "createKey", created: key, apiMustExist: true, event: testEvent(1) } as const;
        return { key, outcome: store.management.change(command, sampleRecord(clock, `for ${apiId}`, key.id)) };
      };
      await createApi(store.management, "known");
      const [known, unknown] = [create("known"), create("unknown")];
      expect(await known.outcome).toEqual(done);
      expect(await unknown.outcome).toEqual({ outcome: "missing" });
      expect(await store.keys.findByDigest(known.key.secretDigest)).toBeDefined();
      expect(await store.keys.findByDigest(unknown.key.secretDigest)).toBeUndefined();
      expect(await readApi(store, "unknown")).toBeUndefined();
      // Nor is the answer kept that was not given.
      await createApi(store.management, "unknown");
      expect(await create("unknown").outcome).toEqual(done);
    },
  },
  {
    name: "an update of an API sets, removes and keeps its fields, and counts its version",
    async run(store, clock) {
      const createdAtMs = clock.nowMs();
      await createApi(store.management, "api", { name: "first", defaults: full, atMs: createdAtMs });
      const steps: [Parameters<typeof updateApi>[2], Partial<StoredApi>][] = [
        [{ name: "second" }, { name: "second", defaults: full }],
        [{ defaults: { remaining: 3 } }, { name: "second", defaults: { remaining: 3 } }],
        [
          { name: null, defaults: {} },
          { name: undefined, defaults: {} },
        ],
        [
          { name: hardText, defaults: full },
          { name: hardText, defaults: full },
        ],
        [{ ownersRequired: true }, { name: hardText, defaults: full, ownersRequired: true }],
        [{ name: "last" }, { name: "last", defaults: full, ownersRequired: true }],
        [{ ownersRequired: false }, { name: "last", defaults: full }],
      ];
      for (const [at, [changes, expected]] of steps.entries()) {
        const stored = {
          id: "api",
          ownersRequired: false,
          createdAtMs,
          updatedAtMs: 100 + at,
          version: 2 + at,
          ...expected,
        };
        const outcome = await updateApi(store.management, "api", changes, { atMs: 100 + at });
        expect(outcome).toEqual({ outcome: "done", changed: [], answer: stored });
        expect(await readApi(store, "api")).toEqual(stored);
      }
    },
  },
  {
    name: "an update of an API with another version is a conflict, and one of an unknown API is missing",
    async run(store) {
      await createApi(store.management, "api", { name: "first" });
      const before = await readApi(store, "api");
      for (const ifVersion of [2, 3]) {
        const outcome = await updateApi(store.management, "api", { name: "second" }, { ifVersion });
        expect(outcome).toEqual({ outcome: "conflict", reason: "version" });
      }
      expect(await updateApi(store.management, "another", { name: "x" }, { ifVersion: 1 })).toEqual({
        outcome: "missing",
      });
      expect(await readApi(store, "api")).toEqual(before);
      expect(await updateApi(store.management, "api", { name: "second" }, { ifVersion: 1 })).toMatchObject({
        outcome: "done",
        answer: { name: "second", version: 2 },
      });
    },
  },
  {
    name: "of several updates of one version of an API at once, one is made",
    async run(store) {
      await createApi(store.management, "api");
      const outcomes = await Promise.all(
        Array.from({ length: 10 }, (_, at) => updateApi(store.management, "api", { name: `${at}` }, { ifVersion: 1 })),
      );
      expect(outcomes.filter(({ outcome }) => outcome === "done")).toHaveLength(1);
      expect(await readApi(store, "api")).toMatchObject({ version: 2 });
    },
  },
  {
    name: "a creation of an API whose record is kept answers the record, and changes nothing",
    async run(store, clock) {
      const record = sampleRecord(clock, "lookup", "first");
      await createApi(store.management, "api", { name: "first", record });
      const before = await readApi(store, "api");
      for (const [id, name] of [
        ["api", "first"],
        ["another", "second"],
      ] as const) {
        const repeated = await createApi(store.management, id, { name, record });
        expect(repeated).toMatchObject({ outcome: "repeated", record: { targetId: record.targetId } });
      }
      expect([await readApi(store, "api"), await readApi(store, "another")]).toEqual([before, undefined]);
    },
  },
  {
    name: "a list shows every API once, newest first, page by page",
    async run(store) {
      const { management } = store;
      expect(await management.read({ kind: "apis", limit: 2 })).toEqual({ items: [] });
      const times: [string, number][] = [
        ["old", 10],
        ["oldest", 5],
        ["newest", 30],
        ["same a", 20],
        ["same b", 20],
        ["same c", 20],
      ];
      for (const [id, atMs] of times) await createApi(management, id, { name: `name of ${id}`, atMs });
      const inOrder = ["newest", "same c", "same b", "same a", "old", "oldest"];
      for (const limit of [1, 2, 4, 5, 6, 7]) {
        const pages = await listedApis(store, limit);
        expect(pages.flat(), `${limit}`).toEqual(inOrder);
        expect(pages.length, `${limit}`).toBe(Math.ceil(6 / limit));
      }
      const [first] = (await management.read({ kind: "apis", limit: 1 })).items;
      expect(first).toEqual(await readApi(store, "newest"));
      // An update moves no API to another page.
      await updateApi(management, "oldest", { name: "x" }, { atMs: 99 });
      expect((await listedApis(store, 6)).flat()).toEqual(inOrder);
    },
  },
  {
    name: "a list of some APIs shows those of them that exist, and no others",
    async run(store) {
      for (let at = 1; at <= 9; at++) await createApi(store.management, `api ${at}`, { atMs: at });
      expect(await listedApis(store, 2, ["api 1", "api 5", "api 8", "unknown"])).toEqual([
        ["api 8", "api 5"],
        ["api 1"],
      ]);
      expect(await listedApis(store, 2, [])).toEqual([[]]);
    },
  },
];
