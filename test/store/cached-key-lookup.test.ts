import { describe, expect, it } from "vitest";
import { Unavailable } from "../../src/domain/unavailable.ts";
import { nextTurn } from "../batching/next-turn.ts";
import { deleteKey, setRateLimit } from "../support/manage.ts";
import { find, setUp, strict } from "./key-cache-fixture.ts";

describe("CachedKeyLookup", () => {
  it("asks the store once for a key it is asked for twice", async () => {
    const all = setUp();
    all.store.add("k");
    const first = await find(all, "k");
    expect(first).toMatchObject({ id: "id of k" });
    expect(await find(all, "k")).toBe(first);
    expect(all.store.asked).toEqual(["k"]);
    expect(all.events).toEqual(["miss", "hit"]);
  });

  it("keeps no room in a key for what few keys have: the end of a secret, permissions, addresses, named limits", async () => {
    const all = setUp();
    all.store.add("k");
    const found = await find(all, "k");
    expect(Object.keys(found ?? {})).toContain("expiresAtMs");
    for (const rare of ["secretExpiresAtMs", "permissions", "ipAllow", "rateLimits", "costMax"]) {
      expect(Object.keys(found ?? {})).not.toContain(rare);
    }
  });

  it("asks again when the time to live since the last current news is over, and not a millisecond before", async () => {
    const all = setUp();
    all.store.add("k");
    all.clock.advance(500);
    await find(all, "k");
    all.clock.advance(499);
    await find(all, "k");
    expect(all.store.asked).toHaveLength(1);
    all.clock.advance(1);
    await find(all, "k");
    await find(all, "k");
    expect(all.store.asked, "each time, until there is news again").toHaveLength(3);
  });

  it("asks once for each key however long it is used, while news is current", async () => {
    const all = setUp();
    const digests = Array.from({ length: 50 }, (_, i) => `key ${i}`);
    for (const digest of digests) all.store.add(digest);
    for (let round = 0; round < 200; round++) {
      for (const digest of digests) await find(all, digest);
      all.clock.advance(900);
      all.cache.newsIsCurrent(all.clock.monotonicMs());
    }
    expect(all.store.asked).toEqual(digests);
  });

  it("serves nothing from memory before the first news", async () => {
    const all = setUp({}, false);
    all.store.add("k");
    await find(all, "k");
    await find(all, "k");
    expect(all.store.asked).toHaveLength(2);
    all.cache.newsIsCurrent(all.clock.monotonicMs());
    await find(all, "k");
    expect(all.store.asked).toHaveLength(2);
  });

  it("goes on with what it remembers when news is current again, but for what the news has told", async () => {
    const all = setUp();
    for (const digest of ["a", "b"]) {
      all.store.add(digest);
      await find(all, digest);
    }
    all.clock.advance(100_000);
    await deleteKey(all.store, "id of b");
    all.cache.invalidate({ kind: "key", keyId: "id of b", digests: ["b"] });
    all.cache.newsIsCurrent(all.clock.monotonicMs());
    expect(await find(all, "a")).toBeDefined();
    expect(all.store.asked).toEqual(["a", "b"]);
    expect(await find(all, "b")).toBeUndefined();
  });

  it("is not set back by older news", async () => {
    const all = setUp();
    all.store.add("k");
    all.clock.advance(900);
    all.cache.newsIsCurrent(900);
    all.cache.newsIsCurrent(400);
    all.clock.advance(600);
    await find(all, "k");
    await find(all, "k");
    expect(all.store.asked).toHaveLength(1);
  });

  it.each(["2000-01-01T00:00:00Z", "2100-01-01T00:00:00Z"])(
    "keeps to it when the wall clock is set to %s",
    async (wall) => {
      const all = setUp();
      all.store.add("k");
      await find(all, "k");
      all.clock.stepTo(wall);
      await find(all, "k");
      expect(all.store.asked).toHaveLength(1);
      all.clock.advance(1000);
      await find(all, "k");
      expect(all.store.asked).toHaveLength(2);
    },
  );

  it("remembers nothing when the time to live is 0", async () => {
    const all = setUp({ ttlMs: 0 });
    all.store.add("k");
    await find(all, "k");
    await find(all, "k");
    expect(all.store.asked).toHaveLength(2);
    expect(all.cache.size).toBe(0);
  });

  it("never remembers that a key is unknown: it is found as soon as it exists", async () => {
    const all = setUp();
    expect(await find(all, "k")).toBeUndefined();
    all.store.add("k");
    expect(await find(all, "k")).toBeDefined();
  });

  it("holds at most keysMax keys and lets the oldest go first", async () => {
    const all = setUp({ keysMax: 2 });
    for (const digest of ["a", "b", "c"]) {
      all.store.add(digest);
      await find(all, digest);
    }
    expect(all.cache.size).toBe(2);
    for (const digest of ["b", "c", "a"]) await find(all, digest);
    expect(all.store.asked).toEqual(["a", "b", "c", "a"]);
  });

  it("counts a renewed entry as young", async () => {
    const all = setUp({ keysMax: 2 });
    for (const digest of ["a", "b", "c"]) all.store.add(digest);
    for (const digest of ["a", "b"]) await find(all, digest);
    all.cache.invalidate({ kind: "key", keyId: "id of a", digests: ["a"] });
    for (const digest of ["a", "c", "a"]) await find(all, digest);
    expect(all.store.asked).toEqual(["a", "b", "a", "c"]);
  });

  it("asks the store at every miss, and shares an answer that the store shares", async () => {
    const { store, cache, events } = setUp();
    store.add("k");
    store.isSharing = true;
    const found = Promise.all(Array.from({ length: 100 }, () => cache.findByDigest("k")));
    expect(store.asked).toHaveLength(100);
    store.answerAll();
    expect(new Set(await found).size).toBe(1);
    expect(events).toEqual(["miss", ...new Array<string>(99).fill("shared")]);
  });

  it("shares no look-up with a caller whose question the store took for a new one", async () => {
    const { store, cache, events } = setUp();
    store.add("k");
    const before = cache.findByDigest("k");
    const answerBefore = store.readNow();
    store.add("k", strict);
    const after = cache.findByDigest("k");
    answerBefore();
    store.answerAll();
    expect(await before).toMatchObject({ rateLimit: undefined });
    expect(await after).toMatchObject({ rateLimit: strict });
    expect(events).toEqual(["miss", "miss"]);
  });

  it("answers and remembers at once if the store answers at once", async () => {
    const all = setUp();
    all.store.add("k");
    all.store.isSynchronous = true;
    expect(all.cache.findByDigest("k")).toMatchObject({ id: "id of k" });
    expect(all.cache.findByDigest("k")).toMatchObject({ id: "id of k" });
    expect(all.cache.findByDigest("unknown")).toBeUndefined();
    expect(all.store.asked).toEqual(["k", "unknown"]);
    expect(all.waitingRoom.taken).toBe(0);
  });

  it("remembers no error: the next look-up asks again", async () => {
    const all = setUp();
    all.store.add("k");
    const failing = expect(all.cache.findByDigest("k")).rejects.toThrow("down");
    await nextTurn();
    all.store.failAll(new Unavailable("down"));
    await failing;
    expect(await find(all, "k")).toBeDefined();
  });

  it("shows its own deletions at once", async () => {
    const all = setUp();
    all.store.add("k");
    await find(all, "k");
    await deleteKey(all.keys, "id of k");
    expect(await find(all, "k")).toBeUndefined();
  });

  it("shows its own changes of a rate limit at once", async () => {
    const all = setUp();
    all.store.add("k");
    await find(all, "k");
    await setRateLimit(all.keys, "id of k", strict);
    expect(await find(all, "k")).toMatchObject({ rateLimit: strict });
  });

  it("does not remember a key as it was before its rate limit changed under a look-up", async () => {
    const all = setUp();
    all.store.add("k");
    const before = all.cache.findByDigest("k");
    await nextTurn();
    const answerBefore = all.store.readNow();
    await setRateLimit(all.keys, "id of k", { mode: "local", limit: 10, durationMs: 1000 });
    answerBefore();
    await before;
    expect(await find(all, "k")).toMatchObject({ rateLimit: { mode: "local" } });
  });

  it("does not remember a key whose look-up was under way while it was deleted", async () => {
    const all = setUp();
    all.store.add("k");
    const before = all.cache.findByDigest("k");
    await nextTurn();
    const answerBefore = all.store.readNow();
    await deleteKey(all.keys, "id of k");
    expect(await find(all, "k"), "a caller after the deletion does not join the old look-up").toBeUndefined();
    answerBefore();
    await before;
    expect(await find(all, "k")).toBeUndefined();
    expect(all.cache.size).toBe(0);
  });

  it("remembers a look-up that was under way while another key changed, and no other key", async () => {
    const all = setUp();
    all.store.add("k").add("other");
    const [first, other] = [all.cache.findByDigest("k"), all.cache.findByDigest("other")];
    await nextTurn();
    all.cache.invalidate({ kind: "key", keyId: "id of other", digests: ["other"] });
    all.store.answerAll();
    await Promise.all([first, other]);
    expect(all.cache.size).toBe(1);
    await find(all, "k");
    expect(all.store.asked).toEqual(["k", "other"]);
  });

  it("remembers no look-up that was under way while everything was forgotten", async () => {
    const all = setUp();
    all.store.add("k");
    const before = all.cache.findByDigest("k");
    await nextTurn();
    all.cache.invalidateAll();
    all.store.answerAll();
    expect(await before).toBeDefined();
    expect(all.cache.size).toBe(0);
  });
});
