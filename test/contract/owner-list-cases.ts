import { expect } from "vitest";
import type { Store } from "../../src/store/store.ts";
import {
  createOwner,
  deleteOwner,
  listEventPages,
  listOwnerPages,
  testEvent,
  updateOwner,
  updateOwnerRemaining,
} from "../support/manage.ts";
import type { ContractCase } from "./contract-case.ts";
import { readOwner, sampleOwner } from "./owner-cases.ts";
import { refillRule } from "./sample-keys.ts";

/** Owners that concern these APIs, oldest first; undefined: all. */
async function createdFor(store: Store, ...lists: readonly (readonly string[] | undefined)[]): Promise<string[]> {
  const ids = lists.map((apiIds, i) => `${i % 2 ? "Z" : "a"}${i}: ${apiIds}`);
  for (const [i, apiIds] of lists.entries()) {
    await createOwner(store.management, sampleOwner(ids[i] as string, { apiIds }));
  }
  return ids;
}

async function listed({ management }: Store, within: readonly string[] | undefined, limit: number) {
  const pages = await listOwnerPages(management, within, { limit });
  return pages.map(({ items }) => items.map(({ id }) => id));
}

/** What has changed since the position, and the position then. */
async function news(store: Store, since: Parameters<Store["changes"]["read"]>[0]) {
  const { changed, position } = await store.changes.read(since);
  return { changed, position };
}

/** Lists of owners, and what is told of their changes. */
export const ownerListCases: readonly ContractCase[] = [
  {
    name: "pages of any size show all owners once, newest first, and only the last has no cursor",
    async run(store) {
      expect(await listed(store, undefined, 5)).toEqual([[]]);
      const ids = (
        await createdFor(store, ...Array.from({ length: 12 }, (_, i) => (i % 3 ? ["a"] : undefined)))
      ).reverse();
      for (const limit of [1, 2, 5, 6, 11, 12, 13, 100]) {
        const pages = await listed(store, undefined, limit);
        expect(pages.flat(), `${limit}`).toEqual(ids);
        expect(pages.map(({ length }) => length <= limit)).not.toContain(false);
        expect(pages.length, `pages of ${limit}`).toBe(Math.ceil(12 / limit));
      }
    },
  },
  {
    name: "a list shows every field of an owner, also after changes, and keeps its order then",
    async run(store) {
      const { management } = store;
      await createOwner(management, sampleOwner("first", { remaining: 3, refill: refillRule(), meta: { a: 1 } }));
      await createOwner(management, sampleOwner("second", { apiIds: ["b", "a"], enabled: false }));
      await updateOwner(management, "first", { apiIds: ["a"], enabled: false }, { atMs: 50 });
      await updateOwnerRemaining(management, "first", "set", 8, { atMs: 60 });
      const { items: owners, cursor } = await management.read({ kind: "owners", limit: 10 });
      expect(owners).toEqual([await readOwner(store, "second"), await readOwner(store, "first")]);
      expect(owners[1]).toMatchObject({ version: 3, updatedAtMs: 60, counter: { remaining: 8 } });
      expect(cursor).toBeUndefined();
    },
  },
  {
    name: "while owners are made and deleted, none that was there throughout is left out or shown twice",
    async run(store) {
      const ids = await createdFor(store, ...Array.from({ length: 12 }, () => undefined));
      const stay = ids.filter((_, i) => i % 3 !== 0).reverse();
      const goes = ids.filter((_, i) => i % 3 === 0);
      let turn = 0;
      const between = async () => {
        const gone = turn++ % 2 === 0 ? goes.pop() : goes.shift();
        if (gone !== undefined) await deleteOwner(store.management, gone);
        await createOwner(store.management, sampleOwner(`new ${turn}`));
      };
      const pages = await listOwnerPages(store.management, undefined, { limit: 2, between });
      const shown = pages.flatMap(({ items }) => items.map(({ id }) => id));
      expect(new Set(shown).size).toBe(shown.length);
      expect(shown.filter((id) => stay.includes(id))).toEqual(stay);
    },
  },
  {
    name: "a list for some APIs shows the owners that concern keys of these alone, on pages that are full",
    async run(store) {
      const lists = [["a"], ["b"], undefined, ["b", "a"], ["a", "c"], ["c"], ["b", "c", "a"], ["d", "a"], ["a"]];
      const ids = await createdFor(store, ...lists);
      const at = (...indexes: number[]) => indexes.map((i) => ids[i] as string);
      for (const [within, expected] of [
        [["a"], at(8, 0)],
        [["b"], at(1)],
        [["a", "b"], at(8, 3, 1, 0)],
        [["b", "a", "a"], at(8, 3, 1, 0)],
        [["c", "a"], at(8, 5, 4, 0)],
        [["a", "b", "c", "none"], at(8, 6, 5, 4, 3, 1, 0)],
        [["none"], []],
        [[], []],
      ] as const) {
        expect(await listed(store, within, 100), `${within}`).toEqual([expected]);
        const single = await listed(store, within, 1);
        expect(single).toEqual(expected.length === 0 ? [[]] : expected.map((id) => [id]));
      }
      // It goes by the APIs that an owner has now.
      await updateOwner(store.management, ids[0] as string, { apiIds: ["z", "a"] });
      await updateOwner(store.management, ids[5] as string, { apiIds: null });
      await updateOwner(store.management, ids[7] as string, { apiIds: ["a"] });
      expect(await listed(store, ["a", "c"], 100)).toEqual([at(8, 7, 4)]);
    },
  },
  {
    name: "every change of an owner leaves one event, which is shown to those who may see all its APIs",
    async run(store) {
      const { management } = store;
      const targetId = "one";
      const owner = sampleOwner(targetId, { remaining: 3, apiIds: ["b", "a"] });
      const events = [1, 2, 3, 4, 5].map((atMs) => testEvent(atMs));
      const at = (i: number) => events[i] as (typeof events)[0];
      const changes = { enabled: false, rateLimits: null, refill: refillRule() };
      await management.change({ kind: "createOwner", created: owner, event: at(0) });
      await management.change({ kind: "updateOwner", id: targetId, changes, event: at(1) });
      await management.change({ kind: "updateOwner", id: targetId, changes: { apiIds: ["a"] }, event: at(2) });
      const counter = { op: "increment", value: 1, id: targetId } as const;
      await management.change({ kind: "updateOwnerRemaining", ...counter, event: at(3) });
      await management.change({ kind: "deleteOwner", id: targetId, event: at(4) });
      // What was not changed leaves none.
      await updateOwner(management, targetId, { enabled: true });
      await deleteOwner(management, targetId);
      const listedFor = async (apiIds?: readonly string[]) => {
        const pages = await listEventPages(management, { targetId, ...(apiIds && { apiIds }) }, { limit: 2 });
        return pages.flatMap((page) => page.items);
      };
      const all = await listedFor();
      const of = { actor: "root_test", targetId, apiId: "a" };
      expect(all).toEqual([
        { ...at(4), ...of, method: "owners.deleteOwner", fields: [], version: 5 },
        { ...at(3), ...of, method: "owners.updateRemaining", fields: ["remaining"], version: 4 },
        { ...at(2), ...of, method: "owners.updateOwner", fields: ["apiIds"], version: 3 },
        { ...at(1), ...of, method: "owners.updateOwner", fields: ["enabled", "ratelimits", "refill"], version: 2 },
        { ...at(0), ...of, method: "owners.createOwner", fields: [], version: 1 },
      ]);
      expect(await listedFor(["a", "b"])).toEqual(all);
      expect(await listedFor(["a"])).toEqual(all.slice(0, 3));
      expect(await listedFor(["b"])).toEqual([]);
      const byMethod = { method: "owners.createOwner", apiIds: ["a"] };
      expect((await listEventPages(management, byMethod)).flatMap((page) => page.items)).toEqual([]);
      // Of an owner that concerns all APIs, nobody is told who may not see all.
      await createOwner(management, sampleOwner("two"));
      const ofTwo = { targetId: "two", apiIds: ["a", "b"] };
      expect((await listEventPages(management, ofTwo)).flatMap((page) => page.items)).toEqual([]);
    },
  },
  {
    name: "a change of an owner is told with its id, and whether the record is new; one that is not made is not told",
    async run(store) {
      const { management } = store;
      let { position } = await news(store, undefined);
      const steps: [() => Promise<unknown>, boolean][] = [
        [() => createOwner(management, sampleOwner("one", { remaining: 3 })), true],
        [() => updateOwner(management, "one", { enabled: false }), false],
        [() => updateOwner(management, "one", {}), false],
        [() => updateOwnerRemaining(management, "one", "increment", 1), false],
        [() => deleteOwner(management, "one"), false],
        [() => createOwner(management, sampleOwner("one")), true],
      ];
      for (const [make, isNew] of steps) {
        await make();
        const { changed, position: next } = await news(store, position);
        expect(changed).toEqual([{ kind: "owner", ownerId: "one", isNew }]);
        position = next;
      }
      await createOwner(management, sampleOwner("one"));
      await updateOwner(management, "one", { enabled: false }, { ifVersion: 9 });
      await updateOwnerRemaining(management, "one", "increment", 1);
      await deleteOwner(management, "none");
      await management.read({ kind: "owner", id: "one" });
      expect((await news(store, position)).changed).toEqual([]);
    },
  },
];
