import { describe, expect, it } from "vitest";
import { Unavailable } from "../../src/domain/unavailable.ts";
import { WaitingRoom } from "../../src/domain/waiting-room.ts";
import { nextTurn } from "../batching/next-turn.ts";
import { deleteKey, setRateLimit } from "../support/manage.ts";
import { answerUntilIdle, find, setUp, strict } from "./key-cache-fixture.ts";

/* The cache with millions of keys and with any number of callers. */

describe("CachedKeyLookup", () => {
  it.each([
    ["deleted", (all: ReturnType<typeof setUp>) => void deleteKey(all.store, "id of k")],
    ["changed", (all: ReturnType<typeof setUp>) => void setRateLimit(all.store, "id of k", strict)],
  ])("does not serve a key that was %s under digests that are not known", async (_, change) => {
    const all = setUp();
    all.store.add("k").add("other");
    await find(all, "k");
    await find(all, "other");
    change(all);
    all.cache.invalidate({ kind: "key", keyId: "id of k", digests: undefined });
    // News that was asked for before the change does not tell of it.
    all.cache.newsIsCurrent(all.clock.monotonicMs());
    const again = await find(all, "k");
    expect(again?.rateLimit).toEqual(again && strict);
    await find(all, "other");
    all.clock.advance(1);
    // Its feed tells the digests, if it was changed.
    all.cache.invalidate({ kind: "key", keyId: "id of k", digests: ["k"] });
    all.cache.newsIsCurrent(all.clock.monotonicMs());
    const last = [await find(all, "k"), await find(all, "k")];
    expect(last[1]).toBe(last[0]);
    expect(all.store.asked, "what is looked up after the news is remembered as ever").toEqual([
      "k",
      "other",
      "k",
      "k",
      ...(again ? [] : ["k"]),
    ]);
  });

  it("remembers no look-up that was under way during such a change, also after the news of it", async () => {
    const all = setUp();
    all.store.add("k");
    const before = all.cache.findByDigest("k");
    await nextTurn();
    const answerBefore = all.store.readNow();
    await deleteKey(all.store, "id of k");
    all.cache.invalidate({ kind: "key", keyId: "id of k", digests: undefined });
    all.clock.advance(1);
    all.cache.invalidate({ kind: "key", keyId: "id of k", digests: ["k"] });
    all.cache.newsIsCurrent(all.clock.monotonicMs());
    answerBefore();
    await before;
    expect(await find(all, "k")).toBeUndefined();
  });

  it("does not let callers after such a change join a look-up that began before it", async () => {
    const { store, cache } = setUp();
    store.add("k");
    const before = cache.findByDigest("k");
    await nextTurn();
    const answerBefore = store.readNow();
    await deleteKey(store, "id of k");
    cache.invalidate({ kind: "key", keyId: "id of k", digests: undefined });
    const after = cache.findByDigest("k");
    answerBefore();
    await before;
    await answerUntilIdle(store);
    expect(await after).toBeUndefined();
  });

  it("forgets everything when more such changes are to be kept than there is room for", async () => {
    const all = setUp({ keysMax: 10_000 });
    all.store.add("k");
    await find(all, "k");
    for (let i = 0; i <= 10_000; i++)
      all.cache.invalidate({ kind: "key", keyId: `id of somebody ${i}`, digests: undefined });
    expect(all.cache.size).toBe(0);
    all.clock.advance(1);
    expect(await find(all, "k")).toBeDefined();
    expect(all.cache.size).toBe(1);
  });

  it("keeps one copy of values that keys share, and changes no other value", async () => {
    const all = setUp();
    for (const digest of ["a", "b"]) {
      all.store.add(digest);
      await setRateLimit(all.store, `id of ${digest}`, { ...strict });
    }
    const [a, b] = [await find(all, "a"), await find(all, "b")];
    expect(a).toMatchObject({ id: "id of a", meta: {}, rateLimit: strict });
    expect(b).toMatchObject({ id: "id of b", meta: {}, rateLimit: strict });
    expect(b?.meta).toBe(a?.meta);
    expect(b?.rateLimit).toBe(a?.rateLimit);
  });

  it("lets a bounded number of callers wait, and a tenth of it for one key", async () => {
    let turnedAway = 0;
    const waitingRoom = new WaitingRoom(30, () => turnedAway++);
    const { store, cache } = setUp({ waitingRoom });
    store.add("hot");
    const hot = Promise.all(Array.from({ length: 3 }, () => cache.findByDigest("hot")));
    await expect(cache.findByDigest("hot")).rejects.toThrow(
      new Unavailable("too many calls are waiting for this key", { nothingDone: true }),
    );
    const others = Promise.all(Array.from({ length: 27 }, (_, i) => cache.findByDigest(`other ${i}`)));
    await expect(cache.findByDigest("one more")).rejects.toThrow(
      new Unavailable("too many calls are waiting", { nothingDone: true }),
    );
    expect(turnedAway).toBe(2);
    await answerUntilIdle(store);
    await Promise.all([hot, others]);
    expect(waitingRoom.taken).toBe(0);
    expect(await cache.findByDigest("hot"), "what is remembered needs no room").toBeDefined();
  });

  it("gives look-ups of texts that anybody can make up a quarter of all places, and the others to real keys", async () => {
    const all = setUp({ waitingRoom: new WaitingRoom(40) });
    const foreign = { foreign: true };
    const madeUp = Array.from({ length: 100 }, (_, i) =>
      Promise.resolve(all.cache.findByDigest(`made up ${i}`, foreign)),
    );
    const real = Array.from({ length: 30 }, (_, i) => Promise.resolve(all.cache.findByDigest(`real ${i}`)));
    const refused = Promise.allSettled([...madeUp, ...real]);
    expect(all.waitingRoom.taken).toBe(40);
    await expect(all.cache.findByDigest("one more")).rejects.toThrow(Unavailable);
    await answerUntilIdle(all.store);
    const states = (await refused).map(({ status }) => status);
    expect(states.slice(0, 100).filter((status) => status === "fulfilled")).toHaveLength(10);
    expect(states.slice(100)).toEqual(real.map(() => "fulfilled"));
    expect(all.waitingRoom.taken).toBe(0);
    expect(all.cache.size, "nothing is remembered of what was not found").toBe(0);
    expect(await find(all, "made up 1")).toBeUndefined();
  });

  it("knows that no key was imported while news is current, and never again once it has heard of one", () => {
    const { cache, clock } = setUp({}, false);
    expect(cache.hasImportedKeys, "before the first news").toBe(true);
    cache.newsIsCurrent(clock.monotonicMs());
    expect(cache.hasImportedKeys).toBe(false);
    clock.advance(1000);
    expect(cache.hasImportedKeys, "news is out of date").toBe(true);
    cache.newsIsCurrent(clock.monotonicMs());
    expect(cache.hasImportedKeys).toBe(false);
    cache.invalidate({ kind: "imports" });
    cache.invalidateAll();
    cache.newsIsCurrent(clock.monotonicMs());
    expect(cache.hasImportedKeys).toBe(true);
  });
});
