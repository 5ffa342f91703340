import { expect } from "vitest";
import { endedSecretKeptMs } from "../../src/domain/expiry.ts";
import type { NewKey } from "../../src/domain/key.ts";
import type { Store } from "../../src/store/store.ts";
import { createKey, deleteKey, rerollKey, setRateLimit, testEvent, updateRemaining } from "../support/manage.ts";
import { ones } from "../support/ones.ts";
import type { ContractCase } from "./contract-case.ts";
import { ask } from "./permit-asks.ts";
import { foundAs, refillRule, sampleKey, sampleRecord } from "./sample-keys.ts";
import { charge, created, settled } from "./usage-cases.ts";

const hourMs = 3_600_000;

function changed(key: NewKey, ...digests: string[]) {
  return { outcome: "done", changed: [{ keyId: key.id, digests }] };
}

const byId = ({ management }: Store, { id }: NewKey) => management.read({ kind: "key", id });
const bySecret = ({ management }: Store, digest: string, nowMs: number) =>
  management.read({ kind: "keyOfSecret", digest, nowMs });

export const rerollCases: readonly ContractCase[] = [
  {
    name: "a rerolled key is found by its new secret, and by the one before together with the moment at which that ends",
    async run(store, clock) {
      const plain = await created(store, clock);
      const full = await created(store, clock, {
        ownerId: "owner",
        meta: { plan: "pro" },
        enabled: false,
        expiresAtMs: clock.nowMs() + 5,
        remaining: 4,
        rateLimit: { mode: "strict", limit: 3, durationMs: 60_000 },
        rateLimits: [
          { name: "minute", rule: { mode: "strict", limit: 3, durationMs: 60_000 } },
          { name: "a.B-_9", rule: { mode: "local", limit: 5, durationMs: 1000 } },
        ],
        costMax: 7,
        environment: "production",
        permissions: ["docs.*", "admin"],
        ipAllow: ["10.0.0.0/8", "2001:db8::1"],
      });
      const other = await created(store, clock, { remaining: 9 });
      for (const key of [plain, full]) {
        const secretDigest = `new ${key.secretDigest}`;
        const event = testEvent(clock.nowMs());
        expect(await rerollKey(store.management, key.id, { secretDigest, overlapMs: hourMs, event })).toEqual(
          changed(key, key.secretDigest),
        );
        expect(await store.keys.findByDigest(secretDigest)).toEqual(foundAs(key));
        expect(await store.keys.findByDigest(key.secretDigest)).toEqual({
          ...foundAs(key),
          secretExpiresAtMs: clock.nowMs() + hourMs,
        });
      }
      expect(await store.keys.findByDigest(other.secretDigest)).toEqual(foundAs(other));
    },
  },
  {
    name: "without an overlap the secret before is gone with the change",
    async run(store, clock) {
      const key = await created(store, clock);
      expect(await rerollKey(store.management, key.id, { secretDigest: "new" })).toEqual(
        changed(key, key.secretDigest),
      );
      expect(await store.keys.findByDigest(key.secretDigest)).toBeUndefined();
      expect(await bySecret(store, key.secretDigest, 1)).toBeUndefined();
      expect(await store.keys.findByDigest("new")).toEqual(foundAs(key));
    },
  },
  {
    name: "a key has two secrets at most: rerolling within an overlap ends the oldest, without one it ends both",
    async run(store, clock) {
      const key = await created(store, clock);
      const found = (...digests: string[]) =>
        Promise.all(digests.map(async (digest) => (await store.keys.findByDigest(digest)) !== undefined));
      const reroll = (secretDigest: string, overlapMs: number) =>
        rerollKey(store.management, key.id, { secretDigest, overlapMs, event: testEvent(clock.nowMs()) });
      await reroll("second", hourMs);
      expect(await reroll("third", 2 * hourMs)).toEqual(changed(key, "second", key.secretDigest));
      expect(await found(key.secretDigest, "second", "third")).toEqual([false, true, true]);
      expect(await store.keys.findByDigest("second")).toMatchObject({
        secretExpiresAtMs: clock.nowMs() + 2 * hourMs,
      });
      expect(await reroll("fourth", 0)).toEqual(changed(key, "third", "second"));
      expect(await found("second", "third", "fourth")).toEqual([false, false, true]);
      expect(await reroll("fifth", 1)).toEqual(changed(key, "fourth"));
      expect(await found("third", "fourth", "fifth")).toEqual([false, true, true]);
    },
  },
  {
    name: "rerolling changes a key's secrets, its start, version and time of change, and nothing else",
    async run(store, clock) {
      const rateLimit = { mode: "strict", limit: 3, durationMs: 60_000 } as const;
      const key = await created(store, clock, { remaining: 10, refill: refillRule(), rateLimit, name: "name" });
      await charge(store, key, 4);
      const before = await byId(store, key);
      clock.advance(1000);
      const atMs = clock.nowMs();
      const event = testEvent(atMs);
      await rerollKey(store.management, key.id, { secretDigest: "new", start: "other", overlapMs: hourMs, event });
      expect(await byId(store, key)).toEqual({
        ...before,
        start: "other",
        version: 2,
        updatedAtMs: atMs,
        secrets: [
          { start: "other", createdAtMs: atMs, expiresAtMs: undefined },
          { start: key.start, createdAtMs: key.createdAtMs, expiresAtMs: atMs + hourMs },
        ],
      });
      await rerollKey(store.management, key.id, { secretDigest: "newer", start: "third", event: testEvent(atMs + 1) });
      expect(await byId(store, key)).toMatchObject({ start: "third", version: 3, updatedAtMs: atMs + 1 });
      expect((await byId(store, key))?.secrets).toEqual([
        { start: "third", createdAtMs: atMs + 1, expiresAtMs: undefined },
      ]);
    },
  },
  {
    name: "rerolling neither opens a new window nor gives a use back",
    async run(store, clock) {
      const rateLimit = { mode: "strict", limit: 5, durationMs: 60_000 } as const;
      const key = await created(store, clock, { remaining: 10, rateLimit });
      const take = (wanted: number) => ask(store, key, { waiting: ones(wanted) });
      expect(await take(3)).toMatchObject({ granted: 3 });
      expect(await charge(store, key, 4)).toEqual(settled(4, 6));
      await rerollKey(store.management, key.id, { secretDigest: "new", overlapMs: hourMs });
      expect(await take(3)).toMatchObject({ granted: 2 });
      expect(await charge(store, key, 1)).toEqual(settled(1, 5));
    },
  },
  {
    name: "a key is read by either of its secrets, by the one before until it ends",
    async run(store, clock) {
      const key = await created(store, clock);
      const event = testEvent(clock.nowMs());
      await rerollKey(store.management, key.id, { secretDigest: "new", overlapMs: hourMs, event });
      const endMs = clock.nowMs() + hourMs;
      const read = await byId(store, key);
      expect(await bySecret(store, "new", endMs)).toEqual(read);
      expect(await bySecret(store, key.secretDigest, endMs - 1)).toEqual(read);
      expect(await bySecret(store, key.secretDigest, endMs)).toBeUndefined();
    },
  },
  {
    name: "every change of a key with two secrets is told with both of their digests, to its caller and in the feed",
    async run(store, clock) {
      const key = await created(store, clock, { remaining: 5 });
      const [first, second, third] = [key.secretDigest, `second ${key.id}`, `third ${key.id}`];
      let { position } = await store.changes.read(undefined);
      const told = async () => {
        const news = await store.changes.read(position);
        position = news.position;
        return news.changed;
      };
      const both = (...digests: string[]) => [{ kind: "key", keyId: key.id, digests }];
      await rerollKey(store.management, key.id, { secretDigest: second, overlapMs: hourMs });
      expect(await told()).toEqual(both(first));
      const local = { mode: "local", limit: 1, durationMs: 1000 } as const;
      expect(await setRateLimit(store.management, key.id, local)).toEqual([second, first]);
      expect(await told()).toEqual(both(second, first));
      expect(await updateRemaining(store.management, key.id, "set", 3)).toMatchObject(changed(key, second, first));
      expect(await told()).toEqual(both(second, first));
      await rerollKey(store.management, key.id, { secretDigest: third, overlapMs: hourMs });
      expect(await told()).toEqual(both(second, first));
      expect(await deleteKey(store.management, key.id)).toEqual([third, second]);
      expect(await told()).toEqual(both(third, second));
      for (const digest of [first, second, third]) expect(await store.keys.findByDigest(digest)).toBeUndefined();
    },
  },
  {
    name: "rerolling a missing or deleted key finds nothing, and its secret opens nothing",
    async run(store, clock) {
      const key = await created(store, clock);
      await deleteKey(store.management, key.id);
      const { position } = await store.changes.read(undefined);
      for (const keyId of [key.id, key.secretDigest, "key of nobody", ""]) {
        const secretDigest = `new ${keyId}`;
        expect(await rerollKey(store.management, keyId, { secretDigest, overlapMs: 1 })).toEqual({
          outcome: "missing",
        });
        expect(await store.keys.findByDigest(secretDigest)).toBeUndefined();
      }
      expect((await store.changes.read(position)).changed).toEqual([]);
    },
  },
  {
    name: "a repeated reroll changes nothing and answers the kept record",
    async run(store, clock) {
      const key = sampleKey(clock);
      await createKey(store.management, key);
      const [record, again] = [sampleRecord(clock, "lookup", "first"), sampleRecord(clock, "lookup", "second")];
      await rerollKey(store.management, key.id, { secretDigest: "new", overlapMs: hourMs }, record);
      expect(await rerollKey(store.management, key.id, { secretDigest: "newer" }, again)).toMatchObject({
        outcome: "repeated",
        record: { sealedAnswer: record.sealedAnswer },
      });
      expect(await store.keys.findByDigest("newer")).toBeUndefined();
      expect(await store.keys.findByDigest(key.secretDigest)).toMatchObject({ id: key.id });
      expect(await byId(store, key)).toMatchObject({ version: 2 });
    },
  },
  {
    name: "of rerolls at once each counts a version, and what they replaced is told or still found",
    async run(store, clock) {
      const key = await created(store, clock, { remaining: 100 });
      const { position } = await store.changes.read(undefined);
      const digests = Array.from({ length: 8 }, (_, i) => `digest ${i} of ${key.id}`);
      await Promise.all([
        ...digests.map((secretDigest, i) =>
          rerollKey(store.management, key.id, { secretDigest, overlapMs: i % 3 === 0 ? 0 : hourMs }),
        ),
        ...digests.map(() => updateRemaining(store.management, key.id, "decrement", 1)),
      ]);
      const news = await store.changes.read(position);
      const told = new Set(
        news.changed === "everything" ? [] : news.changed.flatMap((it) => ("digests" in it ? it.digests : [])),
      );
      let found = 0;
      for (const digest of [key.secretDigest, ...digests]) {
        const isFound = (await store.keys.findByDigest(digest)) !== undefined;
        found += Number(isFound);
        expect(isFound || told.has(digest), digest).toBe(true);
      }
      const read = await byId(store, key);
      expect(read).toMatchObject({ version: 17, counter: { remaining: 92 } });
      expect(found).toBe(read?.secrets.length);
      expect(found).toBeLessThanOrEqual(2);
    },
  },
  {
    name: "tidying removes secrets that ended a minute ago, and no others",
    async run(store, clock) {
      const [ended, ending] = [await created(store, clock), await created(store, clock)];
      const event = testEvent(clock.nowMs());
      const endMs = clock.nowMs() + hourMs;
      await rerollKey(store.management, ended.id, { secretDigest: "new", overlapMs: hourMs, event });
      await rerollKey(store.management, ending.id, {
        secretDigest: "newer",
        overlapMs: hourMs + 1,
        event: testEvent(clock.nowMs()),
      });
      await store.tidy(endMs + endedSecretKeptMs - 1);
      expect(await store.keys.findByDigest(ended.secretDigest)).toMatchObject({ secretExpiresAtMs: endMs });
      await store.tidy(endMs + endedSecretKeptMs);
      expect(await store.keys.findByDigest(ended.secretDigest)).toBeUndefined();
      expect((await byId(store, ended))?.secrets).toHaveLength(1);
      expect(await store.keys.findByDigest(ending.secretDigest)).toMatchObject({ secretExpiresAtMs: endMs + 1 });
      for (const digest of ["new", "newer"]) expect(await store.keys.findByDigest(digest)).toBeDefined();
    },
  },
];
