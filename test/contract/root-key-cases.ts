import { expect } from "vitest";
import type { Clock } from "../../src/ambient/clock.ts";
import { type NewRootKey, type StoredRootKey, unlimitedRootKey } from "../../src/domain/root-key.ts";
import type { Store } from "../../src/store/store.ts";
import { createKey, done, testEvent } from "../support/manage.ts";
import type { ContractCase } from "./contract-case.ts";
import { sampleKey } from "./sample-keys.ts";

const generated = unlimitedRootKey("root_generated");

/** What is found of these digests. */
function found(store: Store, ...digests: string[]) {
  return Promise.all(digests.map((digest) => store.rootKeys.findByDigest(digest)));
}

function newRootKey(clock: Pick<Clock, "nowMs">, name: string, given: Partial<NewRootKey> = {}): NewRootKey {
  return {
    id: `root_${name}`,
    digest: `digest ${name}`,
    start: "lk_root_abcd",
    name: undefined,
    permissions: ["*"],
    apiIds: undefined,
    expiresAtMs: undefined,
    createdAtMs: clock.nowMs(),
    ...given,
  };
}

function asStored({ digest: _, ...rootKey }: NewRootKey): StoredRootKey {
  return { ...rootKey, updatedAtMs: rootKey.createdAtMs, version: 1 };
}

function create({ management }: Store, rootKey: NewRootKey) {
  return management.change({ kind: "createRootKey", created: rootKey, event: testEvent(rootKey.createdAtMs) });
}

function read({ management }: Store, rootKeyId: string) {
  return management.read({ kind: "rootKey", id: rootKeyId });
}

export const rootKeyCases: readonly ContractCase[] = [
  {
    name: "a new store has no root key",
    async run(store, clock) {
      const key = sampleKey(clock);
      await createKey(store.management, key);
      expect(await store.rootKeys.presence(clock.nowMs())).toBe("none");
      expect(await found(store, key.secretDigest, "")).toEqual([undefined, undefined]);
    },
  },
  {
    name: "the first root key is kept and no other after it, not even the same again",
    async run(store, clock) {
      const add = (digest: string) => store.rootKeys.addFirst(digest, "lk_root_abcd", clock.nowMs());
      expect(await add("first")).toBe(true);
      expect(await add("second")).toBe(false);
      expect(await add("first")).toBe(false);
      expect(await found(store, "first", "second")).toEqual([generated, undefined]);
      expect(await store.rootKeys.presence(clock.nowMs())).toBe("generated");
    },
  },
  {
    name: "a generated root key that is retired is not valid any more, and only then replaced by another",
    async run(store, clock) {
      const { rootKeys } = store;
      await rootKeys.addFirst("first", "lk_root_abcd", clock.nowMs());
      await rootKeys.retireGenerated(clock.nowMs(), ["second", "first"]);
      expect([await found(store, "first"), await rootKeys.presence(clock.nowMs())]).toEqual([[generated], "generated"]);

      const retiredAtMs = clock.nowMs();
      await rootKeys.retireGenerated(retiredAtMs, ["second"]);
      clock.advance(1000);
      await rootKeys.retireGenerated(clock.nowMs(), []);
      expect(await found(store, "first")).toEqual([{ ...generated, expiresAtMs: retiredAtMs }]);
      expect(await read(store, "root_generated")).toMatchObject({ expiresAtMs: retiredAtMs, version: 2 });
      expect(await rootKeys.presence(clock.nowMs())).toBe("retired");

      expect(await rootKeys.addFirst("third", "lk_root_efgh", clock.nowMs())).toBe(true);
      expect(await found(store, "first", "third")).toEqual([undefined, generated]);
      expect(await rootKeys.addFirst("fourth", "lk_root_ijkl", clock.nowMs())).toBe(false);
    },
  },
  {
    name: "a retired generated root key is not replaced beside one that was created",
    async run(store, clock) {
      await store.rootKeys.addFirst("first", "lk_root_abcd", clock.nowMs());
      await create(store, newRootKey(clock, "1"));
      await store.rootKeys.retireGenerated(clock.nowMs(), []);
      expect(await store.rootKeys.presence(clock.nowMs())).toBe("some");
      expect(await store.rootKeys.addFirst("second", "start", clock.nowMs())).toBe(false);
    },
  },
  {
    name: "of several first root keys at once, one is kept and only its caller is told so",
    async run(store, clock) {
      const digests = Array.from({ length: 10 }, (_, i) => `digest ${i}`);
      const kept = await Promise.all(digests.map((digest) => store.rootKeys.addFirst(digest, "start", clock.nowMs())));
      expect(kept.filter(Boolean)).toHaveLength(1);
      expect(await found(store, ...digests)).toEqual(kept.map((isKept) => (isKept ? generated : undefined)));
    },
  },
  {
    name: "an issued key is no root key, and a root key no issued one",
    async run(store, clock) {
      const key = sampleKey(clock);
      await createKey(store.management, key);
      await store.rootKeys.addFirst("root", "start", clock.nowMs());
      expect(await found(store, "root", key.secretDigest)).toEqual([generated, undefined]);
      expect(await store.keys.findByDigest("root")).toBeUndefined();
    },
  },
  {
    name: "a root key is found with what it allows, and read and listed without its digest",
    async run(store, clock) {
      const limited = newRootKey(clock, "1", { name: "名前", apiIds: ["a", "b"], expiresAtMs: 5 });
      const unlimited = newRootKey(clock, "2", { permissions: ["keys.*", "apis.read"] });
      for (const rootKey of [limited, unlimited]) {
        expect(await create(store, rootKey)).toEqual(done);
        const { id: rootKeyId, digest, permissions, apiIds, expiresAtMs } = rootKey;
        expect(await found(store, digest)).toEqual([{ rootKeyId, permissions, apiIds, expiresAtMs }]);
        expect(await read(store, rootKeyId)).toEqual(asStored(rootKey));
      }
      expect(await store.rootKeys.presence(clock.nowMs())).toBe("some");
      expect(await store.management.read({ kind: "rootKeys", limit: 10 })).toEqual({
        items: [asStored(unlimited), asStored(limited)],
      });
    },
  },
  {
    name: "the first root key is not added beside one that was created",
    async run(store, clock) {
      await create(store, newRootKey(clock, "1"));
      expect(await store.rootKeys.addFirst("first", "start", clock.nowMs())).toBe(false);
      expect(await found(store, "first")).toEqual([undefined]);
    },
  },
  {
    name: "root keys are listed page by page, newest first",
    async run(store, clock) {
      const all = Array.from({ length: 5 }, (_, i) => newRootKey(clock, `${i}`));
      for (const rootKey of all) await create(store, rootKey);
      const pages: string[][] = [];
      let after: string | undefined;
      do {
        const page = await store.management.read({ kind: "rootKeys", limit: 2, after });
        pages.push(page.items.map(({ id }) => id));
        after = page.cursor;
      } while (after !== undefined);
      expect(pages).toEqual([["root_4", "root_3"], ["root_2", "root_1"], ["root_0"]]);
    },
  },
  {
    name: "a change of a root key sets what is given, removes what is null and keeps the rest; others stay as they are",
    async run(store, clock) {
      const [one, other] = [
        newRootKey(clock, "1", { name: "name", apiIds: ["a"], expiresAtMs: 9 }),
        newRootKey(clock, "2"),
      ];
      for (const rootKey of [one, other]) await create(store, rootKey);
      const changes = { permissions: ["keys.create"], apiIds: null, expiresAtMs: 10 };
      const after = { ...asStored(one), permissions: ["keys.create"], apiIds: undefined, expiresAtMs: 10 };
      const answer = { ...after, updatedAtMs: 77, version: 2 };
      const update = { kind: "updateRootKey", id: one.id, changes, event: testEvent(77) } as const;
      expect(await store.management.change(update)).toEqual({ outcome: "done", changed: [], answer });
      expect(await read(store, one.id)).toEqual(answer);
      const verdict = { rootKeyId: one.id, permissions: ["keys.create"], apiIds: undefined, expiresAtMs: 10 };
      expect(await found(store, one.digest)).toEqual([verdict]);
      expect(await read(store, other.id)).toEqual(asStored(other));
      const unnamed = { ...update, changes: { name: null, expiresAtMs: null }, event: testEvent(78) };
      await store.management.change(unnamed);
      expect(await read(store, one.id)).toMatchObject({ name: undefined, expiresAtMs: undefined, version: 3 });
    },
  },
  {
    name: "a root key of another version is not changed and not revoked",
    async run(store, clock) {
      const rootKey = newRootKey(clock, "1");
      await create(store, rootKey);
      const ifVersion = 2;
      const update = { kind: "updateRootKey", id: rootKey.id, changes: { name: "x" } } as const;
      const conflict = { outcome: "conflict", reason: "version" };
      expect(await store.management.change({ ...update, ifVersion, event: testEvent() })).toEqual(conflict);
      const revoke = { kind: "revokeRootKey", id: rootKey.id } as const;
      expect(await store.management.change({ ...revoke, ifVersion, event: testEvent() })).toEqual(conflict);
      expect(await read(store, rootKey.id)).toEqual(asStored(rootKey));
      expect(await store.management.change({ ...update, ifVersion: 1, event: testEvent() })).toMatchObject({
        outcome: "done",
      });
      expect(await store.management.change({ ...revoke, ifVersion, event: testEvent() })).toEqual(done);
    },
  },
  {
    name: "a root key that was revoked is gone, once; one that is not there is missing",
    async run(store, clock) {
      const [one, other] = [newRootKey(clock, "1"), newRootKey(clock, "2")];
      for (const rootKey of [one, other]) await create(store, rootKey);
      const revoke = () => store.management.change({ kind: "revokeRootKey", id: one.id, event: testEvent() });
      expect(await revoke()).toEqual(done);
      expect(await found(store, one.digest, other.digest)).toMatchObject([undefined, { rootKeyId: other.id }]);
      expect(await read(store, one.id)).toBeUndefined();
      expect(await revoke()).toEqual({ outcome: "missing" });
      const update = { kind: "updateRootKey", id: one.id, changes: { name: "x" }, event: testEvent() } as const;
      expect(await store.management.change(update)).toEqual({ outcome: "missing" });
    },
  },
  {
    name: "changes and revocations of root keys are told, and nothing else of them",
    async run(store, clock) {
      const rootKey = newRootKey(clock, "1");
      const { position } = await store.changes.read(undefined);
      const told = async () => (await store.changes.read(position)).changed;
      await create(store, rootKey);
      expect(await told()).toEqual([]);
      const update = { kind: "updateRootKey", id: rootKey.id, changes: { name: "x" } } as const;
      await store.management.change({ ...update, ifVersion: 5, event: testEvent() });
      await store.management.change({ ...update, id: "root_none", event: testEvent() });
      expect(await told()).toEqual([]);
      await store.management.change({ ...update, event: testEvent() });
      expect(await told()).toEqual([{ kind: "rootKeys" }]);
      await store.management.change({ kind: "revokeRootKey", id: rootKey.id, event: testEvent() });
      expect(await told()).toEqual([{ kind: "rootKeys" }, { kind: "rootKeys" }]);
    },
  },
  {
    name: "every change of a root key has its event, which concerns no API",
    async run(store, clock) {
      const rootKey = newRootKey(clock, "1");
      const targetId = rootKey.id;
      const changes = { name: "x", expiresAtMs: 5 };
      const commands = [
        { kind: "createRootKey", created: rootKey, event: testEvent(1) },
        { kind: "updateRootKey", id: targetId, changes, event: testEvent(2) },
        { kind: "updateRootKey", id: targetId, changes, ifVersion: 9, event: testEvent(3) },
        { kind: "revokeRootKey", id: targetId, event: testEvent(4) },
        { kind: "revokeRootKey", id: targetId, event: testEvent(5) },
      ] as const;
      for (const command of commands) await store.management.change(command);
      const { items: events } = await store.management.read({ kind: "events", targetId, limit: 10 });
      const [created, updated, , revoked] = commands;
      expect(events).toEqual([
        { ...revoked.event, method: "rootKeys.revokeRootKey", targetId, apiId: undefined, fields: [], version: 3 },
        {
          ...updated.event,
          method: "rootKeys.updateRootKey",
          targetId,
          apiId: undefined,
          fields: ["name", "expires"],
          version: 2,
        },
        { ...created.event, method: "rootKeys.createRootKey", targetId, apiId: undefined, fields: [], version: 1 },
      ]);
    },
  },
];
