import fc from "fast-check";
import { expect } from "vitest";
import type { NewKey } from "../../src/domain/key.ts";
import type { KeysQuery } from "../../src/store/queries.ts";
import type { Store } from "../../src/store/store.ts";
import { createKey, deleteKey, listPages } from "../support/manage.ts";
import { createMemoryStore } from "../support/memory-store.ts";
import type { TestClock } from "../support/test-clock.ts";
import type { ContractCase } from "./contract-case.ts";
import { refillRule, sampleKey } from "./sample-keys.ts";

type Filters = Omit<KeysQuery, "kind" | "limit" | "after">;

let listed = 0;
let made = 0;

/** An API that no other case has, and keys of it. Ids are in the order in which they are made. */
function newApi(clock: TestClock) {
  const apiId = `api of list ${++listed}`;
  const next = (given: Partial<NewKey> = {}) =>
    sampleKey(clock, { id: `key_listed_${(++made).toString().padStart(9, "0")}`, apiId, ...given });
  return { apiId, next };
}

async function store(store: Store, keys: readonly NewKey[]): Promise<void> {
  await Promise.all(keys.map((key) => createKey(store.management, key)));
}

async function idsOf(store: Store, filters: Filters, limit?: number): Promise<readonly string[]> {
  const pages = await listPages(store.management, filters, limit === undefined ? {} : { limit });
  return pages.flatMap(({ items }) => items.map(({ id }) => id));
}

const newestFirst = (keys: readonly NewKey[]) => keys.map(({ id }) => id).reverse();

/** Each filter, with keys that it matches and keys that it does not. */
const filterSamples: readonly (readonly [string, Partial<Filters>, Partial<NewKey>[], Partial<NewKey>[]])[] = [
  ["enabled keys", { enabled: true }, [{}], [{ enabled: false }]],
  ["disabled keys", { enabled: false }, [{ enabled: false }], [{}]],
  [
    "keys that expire before a moment",
    { expiresBeforeMs: 5000 },
    [{ expiresAtMs: 1 }, { expiresAtMs: 4999 }],
    [{ expiresAtMs: 5000 }, { expiresAtMs: 2 ** 40 }, {}],
  ],
  [
    "keys of an owner",
    { ownerId: "o" },
    [{ ownerId: "o" }],
    [{ ownerId: "oo" }, { ownerId: "O" }, { ownerId: "" }, {}],
  ],
  [
    "keys whose name begins with a text",
    { search: "Prod" },
    [{ name: "Prod" }, { name: "Production" }, { name: "Prod\u{10ffff}" }, { name: "Prod 漢" }],
    [{ name: "prod" }, { name: "Pro" }, { name: "Proe" }, { name: "a Prod" }, { name: "" }, {}],
  ],
  [
    "keys whose start begins with a text",
    { search: "test_a" },
    [{ start: "test_a" }, { start: "test_aB12", name: "else" }, { start: "test_aB12", name: "test_a" }],
    [{ start: "test_A" }, { start: "test_b" }, { start: "test" }],
  ],
  [
    "keys whose name begins with what is special elsewhere",
    { search: "50%_\\" },
    [{ name: "50%_\\ off" }],
    [{ name: "50 %" }, { name: "50%x\\" }],
  ],
  [
    "keys whose name begins with characters at the ends of their ranges",
    { search: "\ud7ff\u{10ffff}" },
    [{ name: "\ud7ff\u{10ffff}" }, { name: "\ud7ff\u{10ffff}a" }],
    [{ name: "\ud7ff" }, { name: "\ue000" }, { name: "\ud7ff\u{10fffe}" }],
  ],
  [
    "keys whose name begins with the last character",
    { search: "\u{10ffff}" },
    [{ name: "\u{10ffff}x" }],
    [{ name: "z" }],
  ],
  [
    "keys for one environment",
    { environment: "test" },
    [{ environment: "test" }],
    [{ environment: "Test" }, { environment: "test " }, {}],
  ],
  [
    "keys that pass every filter",
    { environment: "e", enabled: true, expiresBeforeMs: 9, ownerId: "o", search: "n" },
    [{ environment: "e", expiresAtMs: 8, ownerId: "o", name: "n1" }],
    [
      { expiresAtMs: 8, ownerId: "o", name: "n1" },
      { environment: "e", expiresAtMs: 9, ownerId: "o", name: "n1" },
      { environment: "e", expiresAtMs: 8, ownerId: "p", name: "n1" },
      { environment: "e", expiresAtMs: 8, ownerId: "o", name: "m1" },
      { environment: "e", expiresAtMs: 8, ownerId: "o", name: "n1", enabled: false },
    ],
  ],
];

const anyFilters = fc.record(
  {
    ownerId: fc.constantFrom("o1", "o2"),
    enabled: fc.boolean(),
    environment: fc.constantFrom("e1", "e2"),
    expiresBeforeMs: fc.constantFrom(5, 6),
    search: fc.constantFrom("a", "aB", "b", "ab"),
  },
  { requiredKeys: [] },
);
const anyText = fc.constantFrom("a", "A", "aB", "aBc", "ab", "b", "");
const anyKey = fc.record({
  ownerId: fc.constantFrom("o1", "o2", undefined),
  enabled: fc.boolean(),
  environment: fc.constantFrom("e1", "e2", undefined),
  expiresAtMs: fc.constantFrom(4, 5, undefined),
  name: fc.option(anyText, { nil: undefined }),
  start: anyText,
});

export const listCases: readonly ContractCase[] = [
  {
    name: "a list shows every field of a key",
    async run(store, clock) {
      const { apiId, next } = newApi(clock);
      const plain = next();
      const full = next({
        ownerId: "owner",
        name: "名前",
        meta: { plan: { deep: [1, null] } },
        enabled: false,
        expiresAtMs: 2 ** 41,
        rateLimit: { mode: "strict", limit: 7, durationMs: 60_000 },
        rateLimits: [
          { name: "minute", rule: { mode: "strict", limit: 3, durationMs: 60_000 } },
          { name: "a.B-_9", rule: { mode: "local", limit: 5, durationMs: 1000 } },
        ],
        costMax: 7,
        environment: "production",
        permissions: ["docs.*", "admin"],
        ipAllow: ["10.0.0.0/8", "2001:db8::1"],
        remaining: 2,
        refill: refillRule({ interval: "monthly", amount: 9, carryOver: true }),
      });
      for (const key of [plain, full]) await createKey(store.management, key);
      const { items, cursor } = await store.management.read({ kind: "keys", apiId, limit: 100 });
      const read = await Promise.all([full, plain].map(({ id }) => store.management.read({ kind: "key", id })));
      expect(items).toEqual(read);
      expect(items[0]).toMatchObject({ name: "名前", version: 1, start: full.start, counter: { remaining: 2 } });
      expect(cursor).toBeUndefined();
    },
  },
  {
    name: "a list shows balances with every refill that is due",
    async run(store, clock) {
      const { apiId, next } = newApi(clock);
      await createKey(store.management, next({ remaining: 1, refill: refillRule({ amount: 10 }) }));
      await createKey(store.management, next({ remaining: 1 }));
      clock.stepTo(clock.nowMs() + 24 * 3_600_000);
      const { items } = await store.management.read({ kind: "keys", apiId, limit: 100 });
      expect(items.map(({ counter }) => counter?.remaining)).toEqual([1, 10]);
    },
  },
  {
    name: "pages of any size show all keys of an API once, newest first, and only the last has no cursor",
    async run(target, clock) {
      const { apiId, next } = newApi(clock);
      const keys = Array.from({ length: 12 }, () => next());
      await store(target, keys);
      for (const limit of [1, 2, 3, 4, 5, 6, 11, 12, 13, 100]) {
        const pages = await listPages(target.management, { apiId }, { limit });
        expect(
          pages.flatMap((page) => page.items.map(({ id }) => id)),
          `${limit}`,
        ).toEqual(newestFirst(keys));
        expect(pages.map((page) => page.items.length <= limit)).not.toContain(false);
        expect(pages.length, `pages of ${limit}`).toBe(Math.ceil(12 / limit));
      }
    },
  },
  {
    name: "keys made in the same millisecond are all shown, in one order",
    async run(target, clock) {
      const { apiId, next } = newApi(clock);
      const keys = Array.from({ length: 9 }, () => next({ createdAtMs: 5 }));
      await store(target, keys.toReversed());
      for (const limit of [1, 4, 100]) expect(await idsOf(target, { apiId }, limit)).toEqual(newestFirst(keys));
    },
  },
  {
    name: "ids are in the order of their bytes",
    async run(target, clock) {
      const { apiId, next } = newApi(clock);
      const keys = ["0", "9", "A", "B", "Z", "a", "b", "z"].map((end) => ({ ...next(), id: `key_of_${apiId}_${end}` }));
      await store(target, keys.toReversed());
      expect(await idsOf(target, { apiId }, 3)).toEqual(newestFirst(keys));
    },
  },
  {
    name: "a list shows no keys of another API or owner",
    async run(target, clock) {
      const [ours, others] = [newApi(clock), newApi(clock)];
      const [owner, another] = [`owner of ${ours.apiId}`, `owner of ${others.apiId}`];
      const keys = [
        ours.next({ ownerId: owner }),
        others.next({ ownerId: owner }),
        ours.next({ ownerId: another }),
        others.next({ ownerId: another }),
        ours.next(),
      ];
      await store(target, keys);
      const idsAt = (...at: number[]) => at.map((i) => (keys[i] as NewKey).id);
      expect(await idsOf(target, { apiId: ours.apiId }, 2)).toEqual(idsAt(4, 2, 0));
      expect(await idsOf(target, { ownerId: owner }, 1)).toEqual(idsAt(1, 0));
      expect(await idsOf(target, { apiId: ours.apiId, ownerId: owner })).toEqual(idsAt(0));
      expect(await idsOf(target, { apiId: others.apiId, ownerId: owner })).toEqual(idsAt(1));
      for (const nobody of [{ apiId: "no such API" }, { ownerId: "no such owner" }, { apiId: "", ownerId: "" }]) {
        expect(await target.management.read({ kind: "keys", ...nobody, limit: 1 })).toEqual({ items: [] });
      }
    },
  },
  {
    name: "a list for some APIs shows no keys of others",
    async run(target, clock) {
      const [ours, others] = [newApi(clock), newApi(clock)];
      const ownerId = `owner of ${ours.apiId}`;
      const keys = [ours.next({ ownerId }), others.next({ ownerId }), ours.next({ ownerId, enabled: false })];
      await store(target, keys);
      const idsAt = (...at: number[]) => at.map((i) => (keys[i] as NewKey).id);
      for (const limit of [1, 100]) {
        const ids = (filters: Filters) => idsOf(target, filters, limit);
        const ofOurs = { apiIds: ["none", ours.apiId] };
        expect(await ids({ ownerId, ...ofOurs })).toEqual(idsAt(2, 0));
        expect(await ids({ ownerId, ...ofOurs, enabled: true })).toEqual(idsAt(0));
        expect(await ids({ ownerId, ...ofOurs, search: "live" })).toEqual(idsAt(2, 0));
        expect(await ids({ ownerId, apiIds: [] })).toEqual([]);
        for (const more of [{}, { ownerId }, { search: "live" }]) {
          expect(await ids({ apiId: ours.apiId, ...more, ...ofOurs })).toEqual(idsAt(2, 0));
          expect(await ids({ apiId: others.apiId, ...more, ...ofOurs })).toEqual([]);
        }
      }
    },
  },
  {
    name: "a filter shows exactly the keys that it matches, by API and by owner",
    async run(target, clock) {
      for (const [what, filters, matching, others] of filterSamples) {
        const { apiId, next } = newApi(clock);
        const ownerId = filters.ownerId === undefined ? `owner of ${apiId}` : undefined;
        const keys = matching.map((given) => next({ ownerId, ...given }));
        await store(target, [...keys, ...others.map((given) => next({ ownerId, ...given }))]);
        for (const limit of [1, 100]) {
          expect(await idsOf(target, { apiId, ...filters }, limit), what).toEqual(newestFirst(keys));
          if (ownerId !== undefined) {
            expect(await idsOf(target, { ownerId, ...filters }, limit), `${what}, by owner`).toEqual(newestFirst(keys));
          }
        }
      }
    },
  },
  {
    name: "a list shows a change that was answered before it",
    async run(target, clock) {
      const { apiId, next } = newApi(clock);
      const ids: string[] = [];
      for (let i = 0; i < 20; i++) {
        const key = next();
        await createKey(target.management, key);
        ids.unshift(key.id);
        expect(await idsOf(target, { apiId })).toEqual(ids);
      }
      await deleteKey(target.management, ids.shift() as string);
      expect(await idsOf(target, { apiId })).toEqual(ids);
    },
  },
  {
    name: "while keys are made and deleted, no key that was there throughout is left out or shown twice",
    async run(target, clock) {
      const { apiId, next } = newApi(clock);
      const keys = Array.from({ length: 30 }, () => next());
      await store(target, keys);
      const goes = keys.filter((_, i) => i % 3 === 0);
      const stay = keys.filter((_, i) => i % 3 !== 0);
      let turn = 0;
      const between = async () => {
        // From both ends of the list, so that pages by number would move either way.
        const gone = turn++ % 2 === 0 ? goes.pop() : goes.shift();
        if (gone !== undefined) await deleteKey(target.management, gone.id);
        await store(target, turn % 3 === 0 ? [next(), next(), next()] : []);
      };
      const pages = await listPages(target.management, { apiId }, { limit: 4, between });
      const shown = pages.flatMap((page) => page.items.map(({ id }) => id));
      expect(new Set(shown).size).toBe(shown.length);
      const stayed = new Set(stay.map(({ id }) => id));
      expect(shown.filter((id) => stayed.has(id))).toEqual(newestFirst(stay));
    },
  },
  {
    name: "all pages of any list are together what the plain store lists",
    async run(target, clock) {
      const plain = createMemoryStore(clock);
      const { apiId, next } = newApi(clock);
      const keys = fc.sample(anyKey, { numRuns: 60, seed: 14 }).map((given) => next(given));
      await Promise.all([store(target, keys), store(plain, keys)]);
      await fc.assert(
        fc.asyncProperty(anyFilters, fc.boolean(), fc.constantFrom(1, 7, 100), async (given, byApi, limit) => {
          const filters = byApi || given.ownerId === undefined ? { apiId, ...given } : given;
          expect(await idsOf(target, filters, limit)).toEqual(await idsOf(plain, filters));
        }),
        { numRuns: 60 },
      );
    },
  },
];
