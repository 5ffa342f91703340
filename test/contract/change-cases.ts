import { expect } from "vitest";
import type { FeedChange, FeedPosition } from "../../src/store/change-feed.ts";
import type { Store } from "../../src/store/store.ts";
import { nextTurn } from "../batching/next-turn.ts";
import { createKey, deleteKey, setRateLimit } from "../support/manage.ts";
import type { ContractCase } from "./contract-case.ts";
import { sampleKey } from "./sample-keys.ts";
import { settle } from "./settle.ts";

const rateLimit = { mode: "local", limit: 5, durationMs: 1000 } as const;

/** Where the feed stands now. */
async function positionOf({ changes }: Store): Promise<FeedPosition> {
  return (await changes.read(undefined)).position;
}

async function changedSince({ changes }: Store, since: FeedPosition): Promise<"everything" | readonly FeedChange[]> {
  return (await changes.read(since)).changed;
}

export const changeCases: readonly ContractCase[] = [
  {
    name: "to a reader without a position everything counts as changed, and to the next read nothing",
    async run({ changes }) {
      const first = await changes.read(undefined);
      expect(first).toMatchObject({ changed: "everything", ageMs: 0 });
      expect(await changes.read(first.position)).toMatchObject({ changed: [], ageMs: 0 });
    },
  },
  {
    name: "a change of a key and its deletion are told, each with the digests of its secrets",
    async run(store, clock) {
      const [changed, deleted] = [sampleKey(clock), sampleKey(clock)];
      for (const key of [changed, deleted]) await createKey(store.management, key);
      const since = await positionOf(store);
      await setRateLimit(store.management, changed.id, rateLimit);
      await deleteKey(store.management, deleted.id);
      expect(await changedSince(store, since)).toEqual(
        expect.arrayContaining(
          [changed, deleted].map(({ id, secretDigest }) => ({ kind: "key", keyId: id, digests: [secretDigest] })),
        ),
      );
      expect(await changedSince(store, since)).toHaveLength(2);
    },
  },
  {
    name: "a change is told once to a reader that goes on, and to each of several readers",
    async run(store, clock) {
      const key = sampleKey(clock);
      await createKey(store.management, key);
      const since = await positionOf(store);
      await deleteKey(store.management, key.id);
      for (let reader = 0; reader < 2; reader++) {
        const { changed, position } = await store.changes.read(since);
        expect(changed).toHaveLength(1);
        expect(await changedSince(store, position)).toEqual([]);
      }
    },
  },
  {
    name: "none of many changes at once is missed by a reader that reads all the time",
    async run(store, clock) {
      const keys = Array.from({ length: 40 }, () => sampleKey(clock));
      await Promise.all(keys.map((key) => createKey(store.management, key)));
      let position = await positionOf(store);
      const told = new Set<string>();
      const read = async () => {
        const news = await store.changes.read(position);
        position = news.position;
        if (news.changed === "everything") throw new Error("the reader was told to forget everything");
        for (const change of news.changed) if (change.kind === "key") told.add(change.keyId);
      };
      let isOver = false;
      const deleting = Promise.all(keys.map(({ id }) => deleteKey(store.management, id))).finally(() => {
        isOver = true;
      });
      while (!isOver) {
        await read();
        // Some stores answer without leaving this turn of the event loop, and the deletions could not go on.
        await nextTurn();
      }
      await deleting;
      await read();
      expect([...told].sort()).toEqual(keys.map(({ id }) => id).sort());
    },
  },
  {
    name: "of several deletions of one key at once, one is told",
    async run(store, clock) {
      const key = sampleKey(clock);
      await createKey(store.management, key);
      const since = await positionOf(store);
      await Promise.all(Array.from({ length: 10 }, () => deleteKey(store.management, key.id)));
      expect(await changedSince(store, since)).toEqual([{ kind: "key", keyId: key.id, digests: [key.secretDigest] }]);
    },
  },
  {
    name: "what changes no key and no root key is not told: keys that are created, used or missing",
    async run(store, clock) {
      const since = await positionOf(store);
      const key = sampleKey(clock, { remaining: 5 });
      await createKey(store.management, key);
      await settle(store, [{ subject: key.id, cost: 1, count: 1 }]);
      await deleteKey(store.management, "key of nobody");
      await setRateLimit(store.management, "key of nobody", rateLimit);
      await store.tidy(clock.nowMs());
      expect(await changedSince(store, since)).toEqual([]);
    },
  },
  {
    name: "the first root key is told, and one that was not stored is not",
    async run(store, clock) {
      const since = await positionOf(store);
      await store.rootKeys.addFirst("first", "lk_root_abcd", clock.nowMs());
      await store.rootKeys.addFirst("second", "lk_root_abcd", clock.nowMs());
      expect(await changedSince(store, since)).toEqual([{ kind: "rootKeys" }]);
    },
  },
  {
    name: "a position of another epoch counts as unknown",
    async run(store) {
      const position = await positionOf(store);
      expect(await changedSince(store, { ...position, epoch: "another" })).toBe("everything");
    },
  },
  {
    name: "a position in the future counts as unknown",
    async run(store) {
      const position = await positionOf(store);
      // Far enough: other databases on the same server also give out ids.
      const future = { ...position, transaction: position.transaction + 1_000_000 };
      expect(await changedSince(store, future)).toBe("everything");
    },
  },
  {
    name: "a position is plain data: whoever gets it over a wire goes on from there",
    async run(store, clock) {
      const key = sampleKey(clock);
      await createKey(store.management, key);
      const since = JSON.parse(JSON.stringify(await positionOf(store))) as FeedPosition;
      await deleteKey(store.management, key.id);
      expect(await changedSince(store, since)).toHaveLength(1);
    },
  },
];
