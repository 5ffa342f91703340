import { describe, expect, it } from "vitest";
import type { Key } from "../../src/domain/key.ts";
import type { Owner } from "../../src/domain/owner.ts";
import { Unavailable } from "../../src/domain/unavailable.ts";
import { WaitingRoom } from "../../src/domain/waiting-room.ts";
import type { KeyCacheOptions } from "../../src/store/cached-key-lookup.ts";
import { CachedOwners } from "../../src/store/cached-owners.ts";
import { foundAs, sampleKey } from "../contract/sample-keys.ts";
import { TestClock } from "../support/test-clock.ts";

const record: Owner = { id: "acme", enabled: true, apiIds: undefined, rateLimits: undefined, counter: undefined };

/** A key of an owner that has a record. */
function keyOf(ownerId: string | undefined, given: Partial<Key> = {}): Key {
  return { ...foundAs(sampleKey(new TestClock(), { apiId: "api_1" })), ownerId, hasOwnerRecord: true, ...given };
}

/** A cache on a store that answers when told to, or at once. News is current as of the beginning. */
function setUp(options: Partial<KeyCacheOptions> & { isHeld?: boolean } = {}) {
  const clock = new TestClock();
  const records = new Map<string, Owner>([["acme", record]]);
  const asked: string[] = [];
  const held: (() => void)[] = [];
  const store = {
    findOwner(ownerId: string) {
      asked.push(ownerId);
      const found = records.get(ownerId);
      if (!options.isHeld) return found;
      return new Promise<Owner | undefined>((resolve) => held.push(() => resolve(found)));
    },
  };
  const waitingRoom = new WaitingRoom(100);
  const cache = new CachedOwners(store, { ttlMs: 1000, keysMax: 100, waitingRoom, ...options }, { clock });
  cache.newsIsCurrent(clock.monotonicMs());
  const answerAll = () => held.splice(0).forEach((answer) => void answer());
  return { cache, clock, records, asked, answerAll };
}

describe("CachedOwners", () => {
  it("asks nothing for a key without an owner, and for one whose owner had no record", () => {
    const { cache, asked } = setUp();
    expect(cache.ownerOf(keyOf(undefined))).toBeUndefined();
    expect(cache.ownerOf(keyOf("acme", { hasOwnerRecord: false }))).toBeUndefined();
    expect(asked).toEqual([]);
  });

  it("asks the store once for all keys of an owner, while news is current", () => {
    const { cache, clock, asked } = setUp();
    for (let i = 0; i < 3; i++) expect(cache.ownerOf(keyOf("acme"))).toBe(record);
    expect(asked).toEqual(["acme"]);
    clock.advance(1000);
    cache.ownerOf(keyOf("acme"));
    cache.ownerOf(keyOf("acme"));
    expect(asked).toHaveLength(3);
    cache.newsIsCurrent(clock.monotonicMs());
    cache.ownerOf(keyOf("acme"));
    expect(asked).toHaveLength(3);
  });

  it("answers a record to keys of its APIs only", () => {
    const { cache, records } = setUp();
    records.set("acme", { ...record, apiIds: ["api_2"] });
    expect(cache.ownerOf(keyOf("acme"))).toBeUndefined();
    expect(cache.ownerOf(keyOf("acme", { apiId: "api_2" }))).toMatchObject({ id: "acme" });
  });

  it("asks again after a change of that owner, and of no other", () => {
    const { cache, records, asked } = setUp();
    records.set("other", { ...record, id: "other" });
    for (const id of ["acme", "other"]) cache.ownerOf(keyOf(id));
    const disabled = { ...record, enabled: false };
    records.set("acme", disabled);
    cache.invalidate({ kind: "owner", ownerId: "acme", isNew: false });
    cache.invalidate({ kind: "key", keyId: "acme", digests: ["acme"] });
    expect(cache.ownerOf(keyOf("acme"))).toBe(disabled);
    cache.ownerOf(keyOf("other"));
    expect(asked).toEqual(["acme", "other", "acme"]);
  });

  it("remembers that a record was removed, until there is one again", () => {
    const { cache, records, asked } = setUp();
    records.delete("acme");
    for (let i = 0; i < 3; i++) expect(cache.ownerOf(keyOf("acme"))).toBeUndefined();
    expect(asked).toHaveLength(1);
    records.set("acme", record);
    cache.invalidate({ kind: "owner", ownerId: "acme", isNew: true });
    expect(cache.ownerOf(keyOf("acme"))).toBe(record);
  });

  it("finds a record that was made after the key was looked up", () => {
    const { cache, asked } = setUp();
    const earlier = keyOf("acme", { hasOwnerRecord: false });
    cache.invalidate({ kind: "owner", ownerId: "acme", isNew: false });
    expect(cache.ownerOf(earlier)).toBeUndefined();
    cache.invalidate({ kind: "owner", ownerId: "acme", isNew: true });
    expect(cache.ownerOf(earlier)).toBe(record);
    expect(cache.ownerOf(keyOf("another", { hasOwnerRecord: false }))).toBeUndefined();
    expect(asked).toEqual(["acme"]);
    // Then the keys are forgotten too.
    cache.invalidateAll();
    expect(cache.ownerOf(earlier)).toBeUndefined();
  });

  it("asks for every owner when more were made than it remembers, so that none is missed", () => {
    const { cache, asked } = setUp();
    for (let i = 0; i < 100_001; i++) cache.invalidate({ kind: "owner", ownerId: `owner ${i}`, isNew: true });
    expect(cache.ownerOf(keyOf("acme", { hasOwnerRecord: false }))).toBe(record);
    expect(asked).toEqual(["acme"]);
  });

  it("does not remember an answer that may be older than a change of that owner", async () => {
    const { cache, asked, answerAll } = setUp({ isHeld: true });
    const found = cache.ownerOf(keyOf("acme"));
    cache.invalidate({ kind: "owner", ownerId: "acme", isNew: false });
    answerAll();
    expect(await found).toBe(record);
    const again = cache.ownerOf(keyOf("acme"));
    expect(asked).toHaveLength(2);
    // A change of another owner is no reason to ask again.
    cache.invalidate({ kind: "owner", ownerId: "other", isNew: false });
    answerAll();
    await again;
    expect(cache.ownerOf(keyOf("acme"))).toBe(record);
    expect(asked).toHaveLength(2);
  });

  it("does not remember an answer from before everything was forgotten", async () => {
    const { cache, asked, answerAll } = setUp({ isHeld: true });
    const found = cache.ownerOf(keyOf("acme"));
    cache.invalidateAll();
    answerAll();
    await found;
    void cache.ownerOf(keyOf("acme"));
    expect(asked).toHaveLength(2);
  });

  it("asks past what it remembers where the caller wants what is there now", () => {
    const { cache, records } = setUp();
    cache.ownerOf(keyOf("acme"));
    records.delete("acme");
    expect(cache.ownerOf(keyOf("acme"))).toBe(record);
    expect(cache.ownerOf(keyOf("acme"), { fresh: true })).toBeUndefined();
    expect(cache.ownerOf(keyOf("acme"))).toBeUndefined();
  });

  it("remembers nothing with a time to live of 0", () => {
    const { cache, asked } = setUp({ ttlMs: 0 });
    for (let i = 0; i < 3; i++) cache.ownerOf(keyOf("acme"));
    expect(asked).toHaveLength(3);
    expect(cache.size).toBe(0);
  });

  it("keeps a bounded number of records", () => {
    const { cache, asked } = setUp({ keysMax: 10 });
    for (let i = 0; i < 100; i++) cache.ownerOf(keyOf(`owner ${i}`));
    expect(cache.size).toBe(10);
    cache.ownerOf(keyOf("owner 99"));
    expect(asked).toHaveLength(100);
  });

  it("refuses callers beyond the places of the waiting room, a tenth of it for one owner", async () => {
    const { cache, answerAll } = setUp({ isHeld: true });
    const waiting = Array.from({ length: 20 }, () => cache.ownerOf(keyOf("acme")));
    answerAll();
    const ended = await Promise.allSettled(waiting);
    const refused = ended.filter((each) => each.status === "rejected");
    expect(refused).toHaveLength(10);
    for (const { reason } of refused) expect(reason).toBeInstanceOf(Unavailable);
  });
});
