import { expect } from "vitest";
import type { NewKey } from "../../src/domain/key.ts";
import type { KeyChange } from "../../src/store/changes.ts";
import type { EndOwnerKeys } from "../../src/store/commands.ts";
import type { Store } from "../../src/store/store.ts";
import { createKey, createOwner, deleteOwner, endOwnerKeys, listEventPages, updateOwner } from "../support/manage.ts";
import type { TestClock } from "../support/test-clock.ts";
import type { ContractCase } from "./contract-case.ts";
import { readOwner, sampleOwner } from "./owner-cases.ts";
import { foundAs, sampleKey } from "./sample-keys.ts";
import { settle } from "./settle.ts";

type Given = Pick<EndOwnerKeys, "how"> & Partial<EndOwnerKeys>;

/** Keys of the owner `one` with these letters, the first in the API `a`, the next in `b` and so on, in any order. */
async function createKeys(store: Store, clock: TestClock, letters: string, given: Partial<NewKey> = {}) {
  const keys = [...letters].map((letter, i) => {
    const id = `key_owner_${letter}`;
    return sampleKey(clock, { id, apiId: i % 2 ? "b" : "a", ownerId: "one", remaining: 1, ...given });
  });
  for (const key of keys) await createKey(store.management, key);
  return keys;
}

async function endPiece({ management }: Store, given: Given) {
  const outcome = await endOwnerKeys(management, "one", given);
  if (outcome.outcome !== "done") throw new Error(outcome.outcome);
  return { changed: outcome.changed, cursor: outcome.answer?.cursor };
}

/** The letters of the keys that each piece has changed, and the cursors between them. */
async function endAll(store: Store, given: Given) {
  const pieces: string[] = [];
  const cursors: (string | undefined)[] = [];
  do {
    const { changed, cursor } = await endPiece(store, { ...given, after: cursors.at(-1) });
    pieces.push(lettersOf(changed));
    cursors.push(cursor);
    expect(pieces.length).toBeLessThan(20);
  } while (cursors.at(-1) !== undefined);
  return { pieces, cursors };
}

function lettersOf(changed: readonly KeyChange[]): string {
  const letters = changed.map(({ keyId }) => keyId.slice("key_owner_".length));
  return letters.sort().join("");
}

async function readKeys({ management }: Store, keys: readonly NewKey[]) {
  return Promise.all(keys.map(({ id }) => management.read({ kind: "key", id })));
}

/** The events of the key's end, oldest first. */
async function endsOf({ management }: Store, key: NewKey) {
  const pages = await listEventPages(management, { targetId: key.id });
  return pages.flatMap(({ items }) => items.filter(({ method }) => method !== "keys.createKey"));
}

/** How the keys of an owner are ended, piece by piece. */
export const ownerDeletionCases: readonly ContractCase[] = [
  {
    name: "keys of an owner are deleted in pieces in the order of their ids, whatever their APIs, and no others",
    async run(store, clock) {
      const strict = { mode: "strict", limit: 1, durationMs: 1000 } as const;
      const keys = await createKeys(store, clock, "ebdac", { rateLimit: strict });
      const others = await Promise.all(
        ["", "on", "one ", "one/", undefined].map(async (ownerId) => {
          const key = sampleKey(clock, { apiId: "a", ownerId, remaining: 1 });
          await createKey(store.management, key);
          return key;
        }),
      );
      await createOwner(store.management, sampleOwner("one", { enabled: false }));
      const before = await readOwner(store, "one");
      const { position } = await store.changes.read(undefined);
      const { pieces, cursors } = await endAll(store, { how: "delete", limit: 2 });
      expect(pieces).toEqual(["ab", "cd", "e"]);
      expect(cursors).toEqual(["key_owner_b", "key_owner_d", undefined]);
      const { changed } = await store.changes.read(position);
      expect(changed).toHaveLength(5);
      const reported = keys.map(({ id, secretDigest }) => ({ kind: "key", keyId: id, digests: [secretDigest] }));
      expect(changed).toEqual(expect.arrayContaining(reported));
      for (const key of keys) {
        expect(await store.keys.findByDigest(key.secretDigest)).toBeUndefined();
        expect(await settle(store, [{ subject: key.id, cost: 1, count: 1 }])).toEqual([{ outcome: "missing" }]);
      }
      for (const key of others) expect(await store.keys.findByDigest(key.secretDigest)).toEqual(foundAs(key));
      expect(await readOwner(store, "one")).toEqual(before);
      expect(await endPiece(store, { how: "delete" })).toEqual({ changed: [], cursor: undefined });
    },
  },
  {
    name: "of an owner's keys, those of one API alone are disabled, and keep everything else",
    async run(store, clock) {
      const keys = await createKeys(store, clock, "abcdef");
      await createOwner(store.management, sampleOwner("one", { apiIds: ["a", "b"] }));
      const before = await readKeys(store, keys);
      const { position } = await store.changes.read(undefined);
      const event = { id: "evt_end", atMs: 70, actor: "root_test" };
      const { changed, cursor } = await endPiece(store, { how: "disable", apiId: "a", limit: 3, event });
      expect([lettersOf(changed), cursor]).toEqual(["ace", "key_owner_e"]);
      const digests = keys.filter(({ apiId }) => apiId === "a").map(({ secretDigest }) => secretDigest);
      expect(changed.flatMap((key) => key.digests ?? []).sort()).toEqual(digests.sort());
      expect((await store.changes.read(position)).changed).toHaveLength(3);
      expect(await readKeys(store, keys)).toEqual(
        before.map((key) => (key?.apiId === "a" ? { ...key, enabled: false, version: 2, updatedAtMs: 70 } : key)),
      );
      expect(await endPiece(store, { how: "disable", apiId: "a", after: cursor })).toEqual({
        changed: [],
        cursor: undefined,
      });
    },
  },
  {
    name: "keys that are disabled already are examined, and stay as they are",
    async run(store, clock) {
      const disabled = await createKeys(store, clock, "bd", { apiId: "a", enabled: false });
      await createKeys(store, clock, "ace", { apiId: "a" });
      await createOwner(store.management, sampleOwner("one"));
      const before = await readKeys(store, disabled);
      const { pieces, cursors } = await endAll(store, { how: "disable", apiId: "a", limit: 2 });
      expect(pieces).toEqual(["a", "c", "e"]);
      expect(cursors).toEqual(["key_owner_b", "key_owner_d", undefined]);
      expect(await readKeys(store, disabled)).toEqual(before);
      for (const key of disabled) expect(await endsOf(store, key)).toEqual([]);
      expect((await endAll(store, { how: "disable", apiId: "a", limit: 2 })).pieces).toEqual(["", "", ""]);
      expect((await endAll(store, { how: "delete", apiId: "a", limit: 2 })).pieces).toEqual(["ab", "cd", "e"]);
    },
  },
  {
    name: "each key that is ended has an event of its own, of the deletion of its owner",
    async run(store, clock) {
      const keys = await createKeys(store, clock, "ab");
      await createOwner(store.management, sampleOwner("one"));
      await endPiece(store, { how: "disable" });
      await endPiece(store, { how: "delete" });
      for (const key of keys) {
        const { id: targetId, apiId } = key;
        const common = { targetId, apiId, method: "owners.deleteOwner", actor: "root_test" };
        expect(await endsOf(store, key)).toMatchObject([
          { ...common, fields: [], version: 3 },
          { ...common, fields: ["enabled"], version: 2 },
        ]);
      }
      const [ofOwner] = await listEventPages(store.management, { targetId: "one" });
      expect(ofOwner?.items.map(({ method }) => method)).toEqual(["owners.createOwner"]);
    },
  },
  {
    name: "no key is ended of an owner that is not there, was made since, or has another version",
    async run(store, clock) {
      const keys = await createKeys(store, clock, "ab");
      const before = await readKeys(store, keys);
      const end = (given: Partial<EndOwnerKeys> = {}) =>
        endOwnerKeys(store.management, "one", { how: "delete", ...given });
      expect(await end()).toEqual({ outcome: "missing" });
      await createOwner(store.management, sampleOwner("one"), { atMs: 2 });
      expect(await end()).toEqual({ outcome: "missing" });
      await updateOwner(store.management, "one", { enabled: false });
      expect(await end({ madeAtMs: 2, ifVersion: 1 })).toEqual({ outcome: "conflict", reason: "version" });
      expect(await readKeys(store, keys)).toEqual(before);
      for (const key of keys) expect(await endsOf(store, key)).toEqual([]);
      expect((await end({ madeAtMs: 2, ifVersion: 2 })).outcome).toBe("done");
      await deleteOwner(store.management, "one");
      expect(await end({ madeAtMs: 2 })).toEqual({ outcome: "missing" });
    },
  },
  {
    name: "of several that end the keys of an owner at the same time, one ends each key",
    async run(store, clock) {
      const keys = await createKeys(store, clock, "dacb");
      await createOwner(store.management, sampleOwner("one"));
      for (const how of ["disable", "delete"] as const) {
        const pieces = await Promise.all(Array.from({ length: 4 }, () => endPiece(store, { how })));
        expect(lettersOf(pieces.flatMap(({ changed }) => changed))).toBe("abcd");
      }
      for (const key of keys) expect(await endsOf(store, key)).toHaveLength(2);
    },
  },
];
