import { beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { Unavailable } from "../../../src/domain/unavailable.ts";
import type { FeedChange, FeedNews, FeedPosition } from "../../../src/store/change-feed.ts";
import { FeedRelay, type FeedRelayBounds } from "../../../src/store/feed-relay.ts";
import { nextTurn } from "../../batching/next-turn.ts";
import { TestClock } from "../../support/test-clock.ts";

const position = (count: number, reader = "this coordinator"): FeedPosition => ({
  epoch: "e",
  transaction: 7,
  heartbeat: { reader, count },
});
const keys = (...keyIds: string[]): readonly FeedChange[] =>
  keyIds.map((keyId) => ({ kind: "key", keyId, digests: [`digest of ${keyId}`] }));
const bounds: FeedRelayBounds = { readingsMax: 10, changesMax: 10, answerMax: 5, storeReadsMax: 2 };

interface StoreRead {
  readonly since: FeedPosition | undefined;
  readonly answer: (changed: FeedNews["changed"]) => void;
  readonly fail: () => void;
}

/** A relay on a store whose reads are answered by hand, and the coordinator's readings, numbered by their heartbeats. */
function setUp() {
  const clock = new TestClock();
  const storeReads: StoreRead[] = [];
  const feed = {
    read: (since: FeedPosition | undefined) =>
      new Promise<FeedNews>((resolve, reject) => {
        storeReads.push({
          since,
          answer: (changed) =>
            resolve({ position: position(1, "the store read's own"), changed, hasImportedKeys: false, ageMs: 0 }),
          fail: () => reject(new Unavailable("away")),
        });
      }),
  };
  const relay = new FeedRelay({ clock, feed, bounds });
  let readings = 0;
  const onReading = (changed: FeedNews["changed"] = [], currentAtMs = clock.monotonicMs()) =>
    relay.onNews({ position: position(++readings), changed, hasImportedKeys: false, ageMs: 0 }, currentAtMs);
  return { clock, relay, storeReads, onReading };
}

/** What the promise has come to, without waiting for anything else. */
async function stateOf(read: Promise<FeedNews>): Promise<FeedNews | string> {
  read.catch(() => {});
  await nextTurn();
  return Promise.race([read.catch((error: Error) => error.name), Promise.resolve("waits")]);
}

async function passSecond() {
  vi.advanceTimersByTime(1000);
  await nextTurn();
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
});

describe("the relay of the change feed", () => {
  it("tells a front that has no position that everything has changed, and where its log stands", async () => {
    const { clock, relay, onReading, storeReads } = setUp();
    const read = relay.read(undefined);
    expect(await stateOf(read)).toBe("waits");
    onReading("everything");
    expect(await read).toEqual({ position: position(1), changed: "everything", hasImportedKeys: false, ageMs: 0 });
    clock.advance(300);
    expect(await relay.read(undefined)).toEqual({
      position: position(1),
      changed: "everything",
      hasImportedKeys: false,
      ageMs: 300,
    });
    expect(storeReads).toEqual([]);
  });

  it("tells any number of fronts of each reading at once, without a read of the store", async () => {
    const { relay, onReading, storeReads } = setUp();
    onReading("everything");
    for (let reading = 2; reading < 50; reading++) {
      const reads = Array.from({ length: 20 }, () => relay.read(position(reading - 1)));
      expect(await stateOf(reads[0] as Promise<FeedNews>)).toBe("waits");
      const changed = reading % 2 === 0 ? keys(`${reading}`) : [];
      onReading(changed);
      for (const news of await Promise.all(reads))
        expect(news).toEqual({ position: position(reading), changed, hasImportedKeys: false, ageMs: 0 });
    }
    expect(storeReads).toEqual([]);
  });

  it("says how old news was when it was asked for: also of a reading that was under way then", async () => {
    const { clock, relay, onReading } = setUp();
    onReading("everything", 0);
    clock.advance(500);
    onReading(keys("a"), 500);
    clock.advance(200);
    expect(await relay.read(position(1)), "asked 200 ms later").toMatchObject({
      position: position(2),
      hasImportedKeys: false,
      ageMs: 200,
    });
    const underWay = relay.read(position(2));
    clock.advance(400);
    onReading([], 600);
    expect((await underWay).ageMs, "asked at 700, current as of 600").toBe(100);
    const later = relay.read(position(3));
    clock.advance(400);
    onReading([], 1500);
    expect((await later).ageMs, "asked before the reading began").toBe(0);
  });

  it("is unavailable after a second without a reading, and goes on with the next", async () => {
    const { relay, onReading } = setUp();
    const first = relay.read(undefined);
    first.catch(() => {});
    await passSecond();
    await expect(first).rejects.toThrow(Unavailable);
    onReading("everything");
    const silent = relay.read(position(1));
    silent.catch(() => {});
    vi.advanceTimersByTime(999);
    expect(await stateOf(silent)).toBe("waits");
    await passSecond();
    await expect(silent).rejects.toThrow("has not read the change feed");
    onReading(keys("a"));
    expect((await relay.read(position(1))).changed).toEqual(keys("a"));
  });

  it("tells a front that was away all that it missed, in parts, each current as of its last reading", async () => {
    const { clock, relay, onReading, storeReads } = setUp();
    onReading("everything");
    for (const keyId of ["a", "b", "c"]) {
      clock.advance(500);
      onReading(keys(keyId, `other ${keyId}`));
    }
    const part = await relay.read(position(1));
    expect(part).toEqual({
      position: position(3),
      changed: keys("a", "other a", "b", "other b"),
      hasImportedKeys: false,
      ageMs: 500,
    });
    expect(await relay.read(part.position)).toEqual({
      position: position(4),
      changed: keys("c", "other c"),
      hasImportedKeys: false,
      ageMs: 0,
    });
    expect(storeReads).toEqual([]);
  });

  it("tells everything to all earlier positions once everything counted as changed", async () => {
    const { relay, onReading, storeReads } = setUp();
    onReading("everything");
    onReading(keys("a"));
    onReading("everything");
    onReading(keys("b"));
    for (const earlier of [1, 2])
      expect(await relay.read(position(earlier))).toMatchObject({ position: position(4), changed: "everything" });
    expect((await relay.read(position(3))).changed).toEqual(keys("b"));
    expect(storeReads).toEqual([]);
  });

  it("reads the store for a position that it does not know, once for all fronts that have it, and then no more", async () => {
    const { clock, relay, onReading, storeReads } = setUp();
    const reported = { session: "1", snapshot: "1:1:" };
    const foreign = { ...position(90, "another coordinator"), reported };
    const early = relay.read(foreign);
    expect(await stateOf(early), "until its own log has begun").toBe("waits");
    expect(storeReads).toEqual([]);
    onReading("everything");
    await nextTurn();
    clock.advance(100);
    const late = relay.read(foreign);
    await nextTurn();
    expect(storeReads, "without what only another session can know").toMatchObject([
      { since: position(90, "another coordinator") },
    ]);
    expect(storeReads[0]?.since).not.toHaveProperty("reported");

    onReading(keys("b"));
    storeReads[0]?.answer(keys("a"));
    // Its own position of before the read: "b" may be committed after it.
    expect(await early).toEqual({ position: position(1), changed: keys("a"), hasImportedKeys: false, ageMs: 0 });
    expect(await late).toEqual({ position: position(1), changed: keys("a"), hasImportedKeys: false, ageMs: 100 });
    expect((await relay.read(position(1))).changed).toEqual(keys("b"));
    expect(storeReads).toHaveLength(1);
  });

  it("reads the store for one unknown position at a time, for a bounded number, also after a failure", async () => {
    const { relay, onReading, storeReads } = setUp();
    onReading("everything");
    const [first, second, third] = [1, 2, 3].map((reader) => relay.read(position(1, `reader ${reader}`)));
    await expect(third).rejects.toThrow("too many fronts");
    expect(await stateOf(second as Promise<FeedNews>)).toBe("waits");
    expect(storeReads).toHaveLength(1);
    storeReads[0]?.fail();
    await expect(first).rejects.toThrow(Unavailable);
    await nextTurn();
    storeReads[1]?.answer("everything");
    expect(await second).toMatchObject({ changed: "everything", position: position(1) });
    void relay.read(position(1, "reader 3"));
    await nextTurn();
    expect(storeReads).toHaveLength(3);
  });

  it.each([
    ["readings", Array.from({ length: 10 }, () => keys())],
    ["changes", [keys("a", "b", "c", "d", "e"), keys("f", "g", "h", "i", "j"), keys("k", "l")]],
  ])("reads the store for a position that its log has dropped, because of its %s", async (_, readings) => {
    const { relay, onReading, storeReads } = setUp();
    onReading("everything");
    onReading();
    for (const changed of readings) onReading(changed);
    void relay.read(position(1));
    await nextTurn();
    expect(storeReads).toMatchObject([{ since: position(1) }]);
  });

  it("waits for the next reading also where positions repeat because nothing changes, as in the embedded store", async () => {
    const { clock, relay, storeReads } = setUp();
    const still = { epoch: "e", transaction: 1 };
    relay.onNews({ position: still, changed: "everything", hasImportedKeys: false, ageMs: 0 }, 0);
    for (let reading = 0; reading < 20; reading++) {
      const read = relay.read(still);
      expect(await stateOf(read)).toBe("waits");
      clock.advance(500);
      relay.onNews({ position: still, changed: [], hasImportedKeys: false, ageMs: 0 }, clock.monotonicMs());
      expect(await read).toEqual({ position: still, changed: [], hasImportedKeys: false, ageMs: 0 });
    }
    relay.onNews({ position: { ...still, transaction: 2 }, changed: keys("a"), hasImportedKeys: false, ageMs: 0 }, 0);
    expect((await relay.read(still)).changed).toEqual(keys("a"));
    expect(storeReads).toEqual([]);
  });
});
