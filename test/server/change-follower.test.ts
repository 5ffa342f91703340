import { describe, expect, it, onTestFinished, vi } from "vitest";
import { createLog } from "../../src/ambient/log.ts";
import { createMetrics } from "../../src/ambient/metrics.ts";
import { Unavailable } from "../../src/domain/unavailable.ts";
import { ChangeFollower, type ChangeFollowerDeps } from "../../src/server/change-follower.ts";
import type { FeedChange, FeedNews, FeedPosition } from "../../src/store/change-feed.ts";
import { sumMetric } from "../support/read-metric.ts";
import { TestClock } from "../support/test-clock.ts";

const position = (transaction: number): FeedPosition => ({ epoch: "e", transaction });
const key = (keyId: string): FeedChange => ({ kind: "key", keyId, digests: [`digest of ${keyId}`] });

/** A follower of a feed that gives these answers, in turn; `did` holds what it did. */
function follow(answers: (Partial<FeedNews> | Error)[], deps: Partial<ChangeFollowerDeps> = {}) {
  const clock = new TestClock();
  const metrics = createMetrics();
  const did: string[] = [];
  const logged: string[] = [];
  const asked: (FeedPosition | undefined)[] = [];
  const heard: [FeedNews, number][] = [];
  const follower = new ChangeFollower({
    clock,
    metrics,
    log: createLog("info", (line) => logged.push(JSON.parse(line).msg)),
    feed: {
      async read(since) {
        asked.push(since);
        const answer = answers.shift() ?? {};
        if (answer instanceof Error) throw answer;
        return { position: position(asked.length), changed: [], hasImportedKeys: false, ageMs: 0, ...answer };
      },
    },
    cache: {
      invalidate: (change) =>
        void did.push(change.kind === "key" ? `invalidate ${change.keyId} by ${change.digests}` : change.kind),
      invalidateAll: () => void did.push("invalidate all"),
      newsIsCurrent: (atMs) => void did.push(`current at ${atMs}`),
    },
    onNews: (news, currentAtMs) => heard.push([news, currentAtMs]),
    ...deps,
  });
  const gauge = async (name: string) => sumMetric(await metrics.render(), `latchkey_change_feed_${name}`);
  return { follower, clock, did, heard, logged, asked, gauge };
}

describe("the change follower", () => {
  it("tells every change before it says that news is current, as of the moment at which it asked", async () => {
    const { follower, clock, did, asked } = follow([{}, { changed: [key("a"), { kind: "rootKeys" }, key("b")] }]);
    await follower.round();
    clock.advance(700);
    await follower.round();
    expect(did).toEqual([
      "current at 0",
      "invalidate a by digest of a",
      "rootKeys",
      "invalidate b by digest of b",
      "current at 700",
    ]);
    expect(asked).toEqual([undefined, position(1)]);
  });

  it("tells once that keys were imported, before it says that news is current", async () => {
    const imports = { hasImportedKeys: true };
    const { follower, did } = follow([{}, imports, { ...imports, changed: "everything" }]);
    for (let round = 0; round < 3; round++) await follower.round();
    expect(did).toEqual(["current at 0", "imports", "current at 0", "invalidate all", "current at 0"]);
  });

  it("takes off the age that the news had when it was asked for", async () => {
    const { follower, clock, did } = follow([{ ageMs: 300 }]);
    clock.advance(1000);
    await follower.round();
    expect(did).toEqual(["current at 700"]);
  });

  it("passes on the news of rounds that succeeded, each since the one before", async () => {
    const all = { changed: "everything" } as const;
    const rootKeys = { changed: [{ kind: "rootKeys" }] } as const;
    const { follower, clock, heard } = follow([all, new Unavailable("away"), rootKeys]);
    for (let round = 0; round < 3; round++) {
      clock.advance(500);
      await follower.round();
    }
    expect(heard).toEqual([
      [{ ...all, position: position(1), hasImportedKeys: false, ageMs: 0 }, 500],
      [{ ...rootKeys, position: position(3), hasImportedKeys: false, ageMs: 0 }, 1500],
    ]);
  });

  it("forgets everything when it must, and says so, but not at the start", async () => {
    const { follower, did, logged } = follow([{ changed: "everything" }, { changed: "everything" }]);
    await follower.round();
    expect(logged).toEqual([]);
    await follower.round();
    expect(did).toEqual(["invalidate all", "current at 0", "invalidate all", "current at 0"]);
    expect(logged).toEqual(["changes may have been missed: everything remembered is forgotten"]);
  });

  it("asks again from the same position after a failure, and goes on with what it remembers", async () => {
    const away = new Unavailable("away");
    const { follower, did, asked, logged } = follow([{}, away, away, { changed: [key("a")] }]);
    for (let round = 0; round < 4; round++) await follower.round();
    expect(asked).toEqual([undefined, position(1), position(1), position(1)]);
    expect(did).toEqual(["current at 0", "invalidate a by digest of a", "current at 0"]);
    expect(logged).toEqual(["the change feed cannot be read", "the change feed is read again"]);
  });

  it("is up while news is current: not before the first, not after a failure, not after two seconds", async () => {
    const { follower, clock, gauge } = follow([{}, new Unavailable("away"), {}]);
    expect(await gauge("up")).toBe(0);
    await follower.round();
    expect(await gauge("up")).toBe(1);
    clock.advance(500);
    await follower.round();
    expect([await gauge("up"), await gauge("age_seconds")]).toEqual([0, 0.5]);
    await follower.round();
    expect([await gauge("up"), await gauge("age_seconds")]).toEqual([1, 0]);
    // A read that hangs.
    clock.advance(2001);
    expect(await gauge("up")).toBe(0);
  });

  it("reads twice a second; a feed whose reads wait, again at once, but not after a failure", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    onTestFinished(() => void vi.useRealTimers());
    const failure = [{}, {}, new Unavailable("away"), {}];
    const often = follow([...failure], { everyMs: 20 });
    const seldom = follow([...failure]);
    await Promise.all([often.follower.start(), seldom.follower.start()]);
    const readsAfter = async (ms: number) => {
      await vi.advanceTimersByTimeAsync(ms);
      return [often.asked.length, seldom.asked.length];
    };
    expect(await readsAfter(19)).toEqual([1, 1]);
    expect(await readsAfter(21)).toEqual([3, 1]);
    expect(await readsAfter(459)).toEqual([3, 1]);
    expect(await readsAfter(1)).toEqual([3, 2]);
    expect(await readsAfter(40)).toEqual([4, 2]);
    for (const { follower } of [often, seldom]) follower.stop();
  });

  it("begins the next round soon when it is told of news, also when that comes all the time", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    onTestFinished(() => void vi.useRealTimers());
    const { follower, asked } = follow([]);
    onTestFinished(() => follower.stop());
    await follower.start();
    const readsAfter: number[] = [];
    for (let step = 0; step < 12; step++) {
      follower.hurry();
      await vi.advanceTimersByTimeAsync(10);
      readsAfter.push(asked.length);
    }
    // Every 50 ms: not put off by what comes meanwhile, and not more often either.
    expect(readsAfter).toEqual([1, 1, 1, 1, 2, 2, 2, 2, 2, 3, 3, 3]);
  });
});
