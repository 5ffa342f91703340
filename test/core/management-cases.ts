import { describe, expect, it, vi } from "vitest";
import { sha256 } from "../../src/ambient/crypto.ts";
import type { NewKey } from "../../src/domain/key.ts";
import { metaBytesMax } from "../../src/domain/meta.ts";
import { unlimitedRootKey } from "../../src/domain/root-key.ts";
import { RootKeyRefused } from "../../src/domain/root-key-refused.ts";
import { Secret } from "../../src/domain/secret.ts";
import type { IdempotencyRecord } from "../../src/store/commands.ts";

import { sampleOwner } from "../contract/owner-cases.ts";
import { foundAs, keptForMs, refillRule } from "../contract/sample-keys.ts";
import {
  createApi,
  createKey,
  createOwner,
  deleteKey,
  deleteOwner,
  done,
  findKeptAnswer,
  setRateLimit,
  updateApi,
  updateOwner,
  updateOwnerRemaining,
  updateRemaining,
} from "../support/manage.ts";
import { testRootKey } from "../support/test-root-key.ts";

import { clock, metaOf, type OpenedCore, openWith, realKey, rootKey } from "./core-cases.ts";

const wrongRootKey = new Secret(`${testRootKey}x`);

function recordOf(lookup: string, answer: string): IdempotencyRecord {
  const createdAtMs = clock.nowMs();
  return {
    lookup: sha256(lookup),
    targetId: "key_1",
    requestDigest: sha256(`request of ${answer}`),
    sealedAnswer: `sealed-${answer}`,
    createdAtMs,
    expiresAtMs: createdAtMs + keptForMs,
  };
}

/** What the coordinator adds to an object as a message does not count. */
const kept = ({ requestDigest, sealedAnswer }: IdempotencyRecord) =>
  expect.objectContaining({ requestDigest, sealedAnswer });

/** How every core manages keys, wherever it is. Each case opens one of its own. */
export function managementCases(name: string, open: () => Promise<OpenedCore>): void {
  const setUp = (...keys: NewKey[]) => openWith(open, ...keys);

  describe(`management by ${name}`, () => {
    it("stores a key with everything that belongs to it", async () => {
      const { core, store } = await setUp();
      const key = realKey({
        ownerId: "owner",
        name: "名前",
        meta: metaOf(metaBytesMax),
        enabled: false,
        expiresAtMs: clock.nowMs() + 1000,
        rateLimit: { mode: "strict", limit: 7, durationMs: 60_000 },
        rateLimits: [
          { name: "minute", rule: { mode: "strict", limit: 3, durationMs: 60_000 } },
          { name: "a.B-_9", rule: { mode: "local", limit: 5, durationMs: 1000 } },
        ],
        costMax: 7,
        permissions: ["docs.*", "admin"],
        ipAllow: ["10.0.0.0/8", "2001:db8::1"],
        remaining: 2,
        refill: refillRule({ interval: "monthly", amount: 9, carryOver: true }),
      });
      const created: NewKey[] = [];
      const change = vi.spyOn(store.management, "change").mockImplementation(async (command) => {
        if (command.kind === "createKey") created.push(command.key);
        return done;
      });
      expect(await createKey(core.manage(rootKey), key)).toEqual(done);
      expect(created).toEqual([key]);
      change.mockRestore();
    });

    it("finds a new key at once", async () => {
      const { core } = await setUp();
      const key = realKey({ remaining: 1 });
      await createKey(core.manage(rootKey), key);
      expect(await core.keys.findByDigest(key.secretDigest)).toEqual(foundAs(key));
      expect(await core.usage.spend([key.id], 1)).toEqual({ outcome: "spent", remaining: 0 });
    });

    it("answers a repeated creation with what it answered first, and stores nothing", async () => {
      const { core } = await setUp();
      const keys = core.manage(rootKey);
      const [first, second] = [realKey(), realKey()];
      const record = recordOf("twice", "first");
      expect(await createKey(keys, first, record)).toEqual(done);
      const repeated = await createKey(keys, second, recordOf("twice", "second"));
      expect(repeated).toEqual({ outcome: "repeated", record: kept(record) });
      expect(await core.keys.findByDigest(first.secretDigest)).toEqual(foundAs(first));
      expect(await core.keys.findByDigest(second.secretDigest)).toBeUndefined();
    });

    it("finds a kept answer until it has expired", async () => {
      const { core } = await setUp();
      const keys = core.manage(rootKey);
      const record = recordOf("kept", "answer");
      expect(await findKeptAnswer(keys, record.lookup, clock.nowMs())).toBeUndefined();
      await createKey(keys, realKey(), record);
      expect(await findKeptAnswer(keys, record.lookup, record.expiresAtMs - 1)).toEqual(kept(record));
      expect(await findKeptAnswer(keys, record.lookup, record.expiresAtMs)).toBeUndefined();
      expect(await findKeptAnswer(keys, sha256("another"), clock.nowMs())).toBeUndefined();
    });

    it("reads a key by its id and by its secret", async () => {
      const key = realKey({ name: "名前", meta: metaOf(metaBytesMax), remaining: 2, refill: refillRule() });
      const { core } = await setUp(key);
      const { secretDigest: digest, id: keyId } = key;
      const read = await core.manage(rootKey).read({ kind: "key", keyId });
      expect(read).toMatchObject({ id: keyId, name: key.name, meta: key.meta, version: 1, counter: { remaining: 2 } });
      expect(await core.manage(rootKey).read({ kind: "keyOfSecret", digest, nowMs: 1 })).toEqual(read);
      expect(await core.manage(rootKey).read({ kind: "key", keyId: "key_none" })).toBeUndefined();
      await expect(core.manage(wrongRootKey).read({ kind: "key", keyId })).rejects.toThrow(RootKeyRefused);
    });

    it("lists keys, page by page", async () => {
      const keys = Array.from({ length: 3 }, () =>
        realKey({ ownerId: "owner", meta: metaOf(metaBytesMax), remaining: 2 }),
      );
      const { core } = await setUp(...keys);
      const ids = keys
        .map(({ id }) => id)
        .sort()
        .reverse();
      const query = { kind: "keys", ownerId: "owner", enabled: true, limit: 2 } as const;
      const first = await core.manage(rootKey).read(query);
      expect(first).toMatchObject({
        keys: ids.slice(0, 2).map((id) => ({ id, counter: { remaining: 2 } })),
        cursor: ids[1],
      });
      const second = await core.manage(rootKey).read({ ...query, after: first.cursor });
      expect(second.keys.map(({ id }) => id)).toEqual(ids.slice(2));
      expect(second.cursor).toBeUndefined();
    });

    it("lists events, page by page", async () => {
      const key = realKey();
      const { core } = await setUp(key);
      const management = core.manage(rootKey);
      await setRateLimit(management, key.id, undefined, 2);
      await deleteKey(management, key.id);
      const query = { kind: "events", targetId: key.id, limit: 2 } as const;
      const first = await management.read(query);
      expect(first.events).toMatchObject([
        { method: "keys.deleteKey", targetId: key.id, apiId: key.apiId, fields: [], version: 3 },
        { method: "keys.updateKey", fields: ["ratelimit"], version: 2 },
      ]);
      const second = await management.read({ ...query, after: first.cursor });
      expect(second).toMatchObject({ events: [{ method: "keys.createKey", version: 1 }] });
      expect(second.cursor).toBeUndefined();
      await expect(core.manage(wrongRootKey).read(query)).rejects.toThrow(RootKeyRefused);
    });

    it("deletes a key once, with the digests that it had", async () => {
      const key = realKey({ remaining: 5 });
      const { core } = await setUp(key);
      const keys = core.manage(rootKey);
      expect(await deleteKey(keys, key.id)).toEqual([key.secretDigest]);
      expect(await deleteKey(keys, key.id)).toBeUndefined();
      expect(await core.keys.findByDigest(key.secretDigest)).toBeUndefined();
      expect(await core.usage.spend([key.id], 1)).toEqual({ outcome: "missing" });
    });

    it("gives a key another rate limit, or none", async () => {
      const key = realKey();
      const { core } = await setUp(key);
      const keys = core.manage(rootKey);
      const limits = [
        { mode: "strict", limit: 3, durationMs: 1000 },
        { mode: "local", limit: 2_147_483_647, durationMs: 2_592_000_000 },
        undefined,
      ] as const;
      for (const rateLimit of limits) {
        expect(await setRateLimit(keys, key.id, rateLimit)).toEqual([key.secretDigest]);
        expect((await core.keys.findByDigest(key.secretDigest))?.rateLimit).toEqual(rateLimit);
      }
      expect(await setRateLimit(keys, "key_none", undefined)).toBeUndefined();
    });

    it("changes a counter, and is found with it or without it at once", async () => {
      const key = realKey({ remaining: 5 });
      const { core } = await setUp(key);
      const keys = core.manage(rootKey);
      const update = (...change: [op: "set" | "increment" | "decrement", value: number | undefined]) =>
        updateRemaining(keys, key.id, ...change);
      const changed = [{ keyId: key.id, digests: [key.secretDigest] }];
      const balance = async () => (await core.keys.findByDigest(key.secretDigest))?.counter?.remaining;
      expect(await core.usage.spend([key.id], 1)).toEqual({ outcome: "spent", remaining: 4 });
      expect(await update("set", 50)).toEqual({ outcome: "done", changed, answer: { remaining: 50, version: 2 } });
      expect(await core.usage.spend([key.id], 1)).toEqual({ outcome: "spent", remaining: 49 });
      expect(await update("decrement", 50)).toEqual({ outcome: "conflict", reason: "belowZero" });
      expect(await update("increment", 1)).toEqual({ outcome: "done", changed, answer: { remaining: 50, version: 3 } });
      expect(await balance()).toBe(50);
      expect(await update("set", undefined)).toEqual({ outcome: "done", changed, answer: { version: 4 } });
      expect(await balance()).toBeUndefined();
      expect(await update("increment", 1)).toEqual({ outcome: "conflict", reason: "noCounter" });
      expect(await updateRemaining(keys, "key_none", "set", 1)).toEqual({ outcome: "missing" });
    });

    it("creates, reads, changes and lists APIs", async () => {
      const { core } = await setUp();
      const management = core.manage(rootKey);
      const defaults = { prefix: "live", remaining: 5, refill: refillRule() };
      const created = await createApi(management, "名前", { name: "名前", defaults, atMs: 5 });
      const api = { id: "名前", name: "名前", defaults, createdAtMs: 5, updatedAtMs: 5, version: 1 };
      expect(created).toEqual({ outcome: "done", changed: [], answer: api });
      expect(await createApi(management, "名前")).toEqual({ outcome: "conflict", reason: "apiExists" });
      expect(await management.read({ kind: "api", apiId: "名前" })).toEqual(api);
      expect(await management.read({ kind: "api", apiId: "none" })).toBeUndefined();
      const updated = await updateApi(management, "名前", { name: null, defaults: {} }, { ifVersion: 1, atMs: 7 });
      const { name: _, ...unnamed } = { ...api, defaults: {}, updatedAtMs: 7, version: 2 };
      expect(updated).toEqual({ outcome: "done", changed: [], answer: unnamed });
      expect(await updateApi(management, "名前", { name: null }, { ifVersion: 1 })).toMatchObject({
        reason: "version",
      });
      await createApi(management, "newer", { atMs: 9 });
      const first = await management.read({ kind: "apis", limit: 1 });
      expect(first.apis).toMatchObject([{ id: "newer" }]);
      expect(await management.read({ kind: "apis", limit: 1, after: first.next })).toEqual({ apis: [unnamed] });
    });

    it("creates, reads, changes, lists and deletes owners", async () => {
      const { core } = await setUp();
      const management = core.manage(rootKey);
      const rateLimits = [{ name: "minute", rule: { mode: "strict", limit: 5, durationMs: 60_000 } }] as const;
      const newOwner = sampleOwner("名前", { apiIds: ["b", "a"], rateLimits, meta: { n: "名" }, remaining: 5 });
      const created = await createOwner(management, newOwner, { atMs: 5 });
      const { remaining, refill, ...fields } = newOwner;
      const owner = { ...fields, counter: { remaining, refill }, createdAtMs: 5, updatedAtMs: 5, version: 1 };
      expect(created).toEqual({ outcome: "done", changed: [], answer: owner });
      expect(await createOwner(management, sampleOwner("名前"))).toEqual({
        outcome: "conflict",
        reason: "ownerExists",
      });
      expect(await management.read({ kind: "owner", ownerId: "名前" })).toEqual(owner);
      expect(await management.read({ kind: "owner", ownerId: "none" })).toBeUndefined();
      const added = await updateOwnerRemaining(management, "名前", "increment", 2, { atMs: 6 });
      expect(added).toMatchObject({ outcome: "done", answer: { remaining: 7, version: 2 } });
      const changes = { apiIds: null, rateLimits: null, enabled: false };
      const updated = await updateOwner(management, "名前", changes, { ifVersion: 2, atMs: 7 });
      const { apiIds: _, rateLimits: __, ...bare } = owner;
      const after = { ...bare, enabled: false, counter: { remaining: 7 }, updatedAtMs: 7, version: 3 };
      expect(updated).toEqual({ outcome: "done", changed: [], answer: after });
      expect(await updateOwner(management, "名前", changes, { ifVersion: 2 })).toMatchObject({ reason: "version" });
      await createOwner(management, sampleOwner("newer"), { atMs: 9 });
      const first = await management.read({ kind: "owners", limit: 1 });
      expect(first.owners).toMatchObject([{ id: "newer" }]);
      expect(await management.read({ kind: "owners", limit: 1, after: first.cursor })).toEqual({ owners: [after] });
      expect(await deleteOwner(management, "名前")).toMatchObject({ outcome: "done" });
      expect(await deleteOwner(management, "名前")).toEqual({ outcome: "missing" });
    });

    it("knows its root key, and refuses every other without doing anything", async () => {
      const [key, another] = [realKey(), realKey()];
      const { core } = await setUp(key);
      expect(await core.check(rootKey)).toEqual(unlimitedRootKey("root_test"));
      const record = recordOf("refused", "answer");
      const wrong = ["", wrongRootKey.reveal(), testRootKey.slice(1), key.secretDigest, "x".repeat(20_000)];
      for (const presented of wrong.map((text) => new Secret(text))) {
        expect(await core.check(presented)).toBeUndefined();
        const keys = core.manage(presented);
        await expect(createKey(keys, another, record)).rejects.toThrow(RootKeyRefused);
        await expect(deleteKey(keys, key.id)).rejects.toThrow(RootKeyRefused);
        await expect(keys.read({ kind: "keys", apiId: key.apiId, limit: 1 })).rejects.toThrow(RootKeyRefused);
        await expect(findKeptAnswer(keys, record.lookup, clock.nowMs())).rejects.toThrow(RootKeyRefused);
      }
      expect(await core.keys.findByDigest(key.secretDigest)).toEqual(foundAs(key));
      expect(await core.keys.findByDigest(another.secretDigest)).toBeUndefined();
      expect(await findKeptAnswer(core.manage(rootKey), record.lookup, clock.nowMs())).toBeUndefined();
    });
  });
}
