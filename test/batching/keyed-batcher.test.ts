import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { createMetrics } from "../../src/ambient/metrics.ts";
import { KeyedBatcher } from "../../src/batching/keyed-batcher.ts";
import { Unavailable } from "../../src/domain/unavailable.ts";
import { TestClock } from "../support/test-clock.ts";
import { batchesOf, rejected, setUp, TestEntry } from "./keyed-batcher-fixture.ts";
import { nextTurn } from "./next-turn.ts";

describe("a batch", () => {
  it("of one entry is committed immediately, before the event loop turns", async () => {
    const { submitAlone, lane } = setUp();
    void submitAlone("a");
    await Promise.resolve();
    expect(batchesOf(lane)).toEqual([["a"]]);
  });

  it("has everything that was added in one turn, and each entry gets its own result", async () => {
    const { submitAlone, lane } = setUp();
    const answers = Promise.all(["a", "b", "c"].map(submitAlone));
    await nextTurn();
    await lane.finish();
    expect(batchesOf(lane)).toEqual([["a", "b", "c"]]);
    expect(await answers).toEqual(["[a]:a", "[b]:b", "[c]:c"]);
  });

  it("is the only one under way; entries that come meanwhile go next, in order", async () => {
    const { submitAlone, lane } = setUp();
    void submitAlone("a");
    await nextTurn();
    for (const item of ["b", "c", "d"]) {
      void submitAlone(item);
      await nextTurn();
    }
    expect(batchesOf(lane)).toEqual([["a"]]);
    await lane.finish();
    expect(batchesOf(lane)).toEqual([["a"], ["b", "c", "d"]]);
    expect(lane.underWay).toBe(1);
  });

  it("answers no caller before its commit is done", async () => {
    const { submit, lane } = setUp();
    let isAnswered = false;
    void submit("a").then(() => {
      isAnswered = true;
    });
    await nextTurn();
    expect(isAnswered).toBe(false);
    await lane.finish();
    expect(isAnswered).toBe(true);
  });

  it("never has more than batchMax entries", async () => {
    const { submitAlone, lane } = setUp({ batchMax: 2 });
    const answers = Promise.all(["a", "b", "c", "d", "e"].map(submitAlone));
    for (let batch = 0; batch < 3; batch++) {
      await nextTurn();
      await lane.finish();
    }
    expect(batchesOf(lane)).toEqual([["a", "b"], ["c", "d"], ["e"]]);
    expect(await answers).toHaveLength(5);
  });

  it("never weighs more than it may, but for an entry that is too heavy alone", async () => {
    const weight = { of: ({ items }: TestEntry) => Number(items[0]), max: 5 };
    const { submitAlone, lane } = setUp({ weight, batchMax: 3 });
    const answers = Promise.all(["3", "2", "1", "9", "1", "1", "1", "1", "4"].map(submitAlone));
    await nextTurn();
    while (lane.underWay > 0) await lane.finish();
    expect(batchesOf(lane)).toEqual([["3", "2"], ["1"], ["9"], ["1", "1", "1"], ["1", "4"]]);
    expect(await answers).toHaveLength(9);
  });

  it("that threw fails all of its entries and all behind it, and then others are committed", async () => {
    const { submitAlone, lane } = setUp();
    const failing = ["a", "b"].map(submitAlone);
    await nextTurn();
    failing.push(submitAlone("waits behind"));
    const settled = Promise.allSettled(failing);
    const reason = new Error("the disk is gone");
    await lane.fail(reason);
    expect(await settled).toEqual(failing.map(() => rejected(reason)));
    const next = submitAlone("c");
    await nextTurn();
    await lane.finish();
    expect(await next).toBe("[c]:c");
    expect(batchesOf(lane)).toEqual([["a", "b"], ["c"]]);
  });

  it("that threw before it returned a promise does not stop the next", async () => {
    let calls = 0;
    const commit = (batch: readonly TestEntry[]) => {
      if (calls++ === 0) throw new Error("immediately");
      return Promise.resolve(batch.map(() => "done"));
    };
    const deps = { clock: new TestClock(), metrics: createMetrics() };
    const batcher = new KeyedBatcher<TestEntry, string>({ name: "test", commits: [commit], ...deps });
    const submit = (item: string) => {
      const entry = new TestEntry(undefined);
      batcher.add(entry);
      return entry.join(item);
    };
    await expect(submit("a")).rejects.toThrow("immediately");
    expect(await submit("b")).toBe("done:b");
  });

  it.each([[[]], [["a"]], [["a", "b", "c"]]])("fails loudly when its two entries come back as %j", async (results) => {
    const { submitAll, lane } = setUp();
    const answers = Promise.allSettled(submitAll(["a1", "b1", "a2"]));
    await nextTurn();
    await lane.finishWith(results);
    const reason = new Error(`test: ${results.length} results for 2 entries`);
    expect(await answers).toEqual([rejected(reason), rejected(reason), rejected(reason)]);
  });

  it("is reported with its size and its time", async () => {
    const { submitAlone, lane, committed, clock } = setUp();
    void submitAlone("a");
    void submitAlone("b");
    await nextTurn();
    clock.advance(250);
    await lane.finish();
    expect(committed).toEqual([{ entries: 2, seconds: 0.25 }]);
  });

  it("is one of at most batchesMax under way; what is added in one turn of the event loop goes together", async () => {
    const { batcher, submitAlone, lane } = setUp({ batchesMax: 2 });
    for (const turn of ["a", "b", "c", "d"]) {
      void submitAlone(`${turn}1`);
      // As from another connection that became readable in the same turn.
      queueMicrotask(() => void submitAlone(`${turn}2`));
      await Promise.resolve();
      await nextTurn();
    }
    expect(batchesOf(lane)).toEqual([
      ["a1", "a2"],
      ["b1", "b2"],
    ]);
    await lane.finish();
    expect(batchesOf(lane).slice(2)).toEqual([["c1", "c2", "d1", "d2"]]);
    await lane.finish();
    await lane.finish();
    await batcher.drained();
    expect(lane.underWay).toBe(0);
  });

  it("that would be larger than batchMax is several, sent side by side as far as batchesMax allows", async () => {
    const { submitAlone, lane } = setUp({ batchesMax: 3, batchMax: 2 });
    const answers = Promise.all(["a", "b", "c", "d", "e", "f", "g"].map(submitAlone));
    for (let turn = 0; turn < 4; turn++) await nextTurn();
    expect(batchesOf(lane)).toEqual([
      ["a", "b"],
      ["c", "d"],
      ["e", "f"],
    ]);
    while (lane.underWay > 0) await lane.finish();
    expect(await answers).toHaveLength(7);
  });
});

describe("a queue", () => {
  it("that is full rejects further entries with Unavailable, and takes more when there is room", async () => {
    const { submitAlone, lane } = setUp({ queueMax: 2 });
    const first = submitAlone("first");
    await nextTurn();
    const waiting = ["a", "b"].map(submitAlone);
    const reason = new Unavailable("the test queue is full", { nothingDone: true });
    await expect(submitAlone("c")).rejects.toThrow(reason);
    await lane.finish();
    const later = submitAlone("d");
    await lane.finish();
    await lane.finish();
    expect(await Promise.all([first, ...waiting, later])).toEqual(["[first]:first", "[a]:a", "[b]:b", "[d]:d"]);
    expect(batchesOf(lane).flat()).not.toContain("c");
  });

  it("of entries with deadlines stays as it is when a batch fails", async () => {
    const { submitAlone, lane } = setUp({ queuedMs: 1000 });
    const failing = expect(submitAlone("a")).rejects.toThrow("no");
    await nextTurn();
    const behind = submitAlone("b");
    await lane.fail(new Error("no"));
    await failing;
    await lane.finish();
    expect(await behind).toBe("[b]:b");
  });

  it("rejects entries whose deadline passes, and commits the others", async () => {
    const { submitAlone, lane, clock } = setUp({ queuedMs: 20 });
    const first = submitAlone("a");
    await nextTurn();
    const late = expect(submitAlone("b")).rejects.toThrow(
      new Unavailable("the test queue is too slow", { nothingDone: true }),
    );
    clock.advance(15);
    const inTime = submitAlone("c");
    clock.advance(5);
    await late;
    await lane.finish();
    await lane.finish();
    expect(await Promise.all([first, inTime])).toEqual(["[a]:a", "[c]:c"]);
    expect(batchesOf(lane)).toEqual([["a"], ["c"]]);
  });

  it("does not count time in which the event loop was late", async () => {
    const { submitAlone, lane, clock } = setUp({ queuedMs: 20 });
    const answers = [submitAlone("a")];
    await nextTurn();
    answers.push(submitAlone("b"));
    clock.advanceLate(100);
    // The timer is due.
    await delay(40);
    await lane.finish();
    await lane.finish();
    expect(await Promise.all(answers)).toEqual(["[a]:a", "[b]:b"]);
  });

  it("is drained when nothing waits or is under way, and not before", async () => {
    const { batcher, submitAlone, lane } = setUp({ batchMax: 1 });
    let isDrained = false;
    void submitAlone("a");
    void submitAlone("b");
    void batcher.drained().then(() => {
      isDrained = true;
    });
    await nextTurn();
    await lane.finish();
    expect(isDrained).toBe(false);
    await lane.finish();
    expect(isDrained).toBe(true);
    await batcher.drained();
  });

  it("is drained also when the last batch failed", async () => {
    const { batcher, submitAlone, lane } = setUp();
    const failing = expect(submitAlone("a")).rejects.toThrow("no");
    await nextTurn();
    await lane.fail(new Error("no"));
    await failing;
    await batcher.drained();
    expect(lane.underWay).toBe(0);
  });
});
