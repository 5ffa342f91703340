import { setTimeout as delay } from "node:timers/promises";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createMetrics } from "../../src/ambient/metrics.ts";
import { GroupCommit } from "../../src/batching/group-commit.ts";
import { Unavailable } from "../../src/domain/unavailable.ts";
import { TestClock } from "../support/test-clock.ts";
import { setUp } from "./group-commit-fixture.ts";
import { HeldCommits } from "./held-commits.ts";
import { nextTurn } from "./next-turn.ts";

describe("GroupCommit", () => {
  it("commits an item that is alone at once, before the event loop turns", async () => {
    const { batcher, commits } = setUp();
    void batcher.submit("a");
    await Promise.resolve();
    expect(commits.batches).toEqual([["a"]]);
  });

  it("commits everything submitted in one turn together and answers each with its own result", async () => {
    const { batcher, commits } = setUp();
    const answers = Promise.all(["a", "b", "c"].map((item) => batcher.submit(item)));
    await nextTurn();
    await commits.finish();
    expect(commits.batches).toEqual([["a", "b", "c"]]);
    expect(await answers).toEqual(["a done", "b done", "c done"]);
  });

  it("has one batch under way; items that come meanwhile go next, in order", async () => {
    const { batcher, commits } = setUp();
    void batcher.submit("a");
    await nextTurn();
    for (const item of ["b", "c", "d"]) {
      void batcher.submit(item);
      await nextTurn();
    }
    expect(commits.batches).toEqual([["a"]]);
    expect(batcher.queued).toBe(3);
    await commits.finish();
    expect(commits.batches).toEqual([["a"], ["b", "c", "d"]]);
    expect([batcher.queued, commits.underWay]).toEqual([0, 1]);
  });

  it("answers no caller before the commit is done", async () => {
    const { batcher, commits } = setUp();
    let answered = false;
    void batcher.submit("a").then(() => {
      answered = true;
    });
    await nextTurn();
    expect(answered).toBe(false);
    await commits.finish();
    expect(answered).toBe(true);
  });

  it("never commits more than batchMax at once", async () => {
    const { batcher, commits } = setUp({ batchMax: 2 });
    const answers = Promise.all(["a", "b", "c", "d", "e"].map((item) => batcher.submit(item)));
    for (let batch = 0; batch < 3; batch++) {
      await nextTurn();
      await commits.finish();
    }
    expect(commits.batches).toEqual([["a", "b"], ["c", "d"], ["e"]]);
    expect(await answers).toHaveLength(5);
  });

  it("never commits more weight than it may at once, but for an item that is too heavy alone", async () => {
    const weight = { of: (item: string) => Number(item), max: 5 };
    const { batcher, commits } = setUp({ weight, batchMax: 3 });
    const answers = Promise.all(["3", "2", "1", "9", "1", "1", "1", "1", "4"].map((item) => batcher.submit(item)));
    await nextTurn();
    while (commits.underWay > 0) await commits.finish();
    expect(commits.batches).toEqual([["3", "2"], ["1"], ["9"], ["1", "1", "1"], ["1", "4"]]);
    expect(await answers).toHaveLength(9);
  });

  it("refuses items with Unavailable when the queue is full, commits the rest and takes more when there is room", async () => {
    const { batcher, commits } = setUp({ queueMax: 2 });
    const first = batcher.submit("first");
    await nextTurn();
    const waiting = [batcher.submit("a"), batcher.submit("b")];
    const refused = batcher.submit("c");
    await expect(refused).rejects.toThrow(new Unavailable("the test queue is full", { nothingDone: true }));
    await commits.finish();
    const later = batcher.submit("d");
    await commits.finish();
    await commits.finish();
    expect(await Promise.all([first, ...waiting, later])).toEqual(["first done", "a done", "b done", "d done"]);
    expect(commits.batches.flat()).not.toContain("c");
  });

  it("fails all items of a commit that threw and all behind it, and then goes on", async () => {
    const { batcher, commits } = setUp();
    const failing = [batcher.submit("a"), batcher.submit("b")];
    await nextTurn();
    failing.push(batcher.submit("waits behind"));
    const settled = Promise.allSettled(failing);
    const reason = new Error("the disk is gone");
    await commits.fail(reason);
    expect(await settled).toEqual(failing.map(() => ({ status: "rejected", reason })));
    const next = batcher.submit("c");
    await nextTurn();
    await commits.finish();
    expect(await next).toBe("c done");
  });

  it("goes on after a commit that threw before it returned a promise", async () => {
    let calls = 0;
    const batcher = new GroupCommit<string, string>({
      name: "test",
      batchMax: 1,
      queueMax: 9,
      clock: new TestClock(),
      metrics: createMetrics(),
      commit: (items) => {
        if (calls++ === 0) throw new Error("at once");
        return Promise.resolve(items);
      },
    });
    await expect(batcher.submit("a")).rejects.toThrow("at once");
    expect(await batcher.submit("b")).toBe("b");
  });

  it.each([[[]], [["a done"]], [["a done", "b done", "c done"]]])(
    "fails loudly when two items come back as %j",
    async (results) => {
      const { batcher, commits } = setUp();
      const answers = Promise.allSettled([batcher.submit("a"), batcher.submit("b")]);
      await nextTurn();
      await commits.finishWith(results);
      const reason = new Error(`test: ${results.length} results for 2 items`);
      expect(await answers).toEqual([
        { status: "rejected", reason },
        { status: "rejected", reason },
      ]);
    },
  );

  it("is drained when nothing is queued or under way, and not before", async () => {
    const { batcher, commits } = setUp({ batchMax: 1 });
    let drained = false;
    void batcher.submit("a");
    void batcher.submit("b");
    void batcher.drained().then(() => {
      drained = true;
    });
    await nextTurn();
    await commits.finish();
    expect(drained).toBe(false);
    await commits.finish();
    expect(drained).toBe(true);
    await batcher.drained();
  });

  it("is drained also when the last commit failed", async () => {
    const { batcher, commits } = setUp();
    const failing = expect(batcher.submit("a")).rejects.toThrow("no");
    await nextTurn();
    await commits.fail(new Error("no"));
    await failing;
    await batcher.drained();
    expect(commits.underWay).toBe(0);
  });

  it("has up to batchesMax batches under way; what is submitted in one turn of the event loop goes together", async () => {
    const { batcher, commits } = setUp({ batchesMax: 2 });
    for (const turn of ["a", "b", "c", "d"]) {
      void batcher.submit(`${turn}1`);
      // As from another connection that became readable in the same turn.
      queueMicrotask(() => void batcher.submit(`${turn}2`));
      await Promise.resolve();
      await nextTurn();
    }
    expect(commits.batches).toEqual([
      ["a1", "a2"],
      ["b1", "b2"],
    ]);
    await commits.finish();
    expect(commits.batches.slice(2)).toEqual([["c1", "c2", "d1", "d2"]]);
    await commits.finish();
    await commits.finish();
    await batcher.drained();
    expect(commits.underWay).toBe(0);
  });

  it("sends more than batchMax items of a turn in several batches at once", async () => {
    const { batcher, commits } = setUp({ batchesMax: 3, batchMax: 2 });
    const answers = Promise.all(["a", "b", "c", "d", "e", "f", "g"].map((item) => batcher.submit(item)));
    for (let turn = 0; turn < 4; turn++) await nextTurn();
    expect(commits.batches).toEqual([
      ["a", "b"],
      ["c", "d"],
      ["e", "f"],
    ]);
    while (commits.underWay > 0) await commits.finish();
    expect(await answers).toHaveLength(7);
  });

  it("with a limit on queueing, leaves the items behind a failed batch alone", async () => {
    const { batcher, commits } = setUp({ queuedMs: () => 1000 });
    const failing = expect(batcher.submit("a")).rejects.toThrow("no");
    await nextTurn();
    const behind = batcher.submit("b");
    await commits.fail(new Error("no"));
    await failing;
    await commits.finish();
    expect(await behind).toBe("b done");
  });

  it("rejects items that are queued for too long, and tells a commit what was left of that time for its first item", async () => {
    const left: number[] = [];
    const clock = new TestClock();
    const held = new HeldCommits<string, string>((item) => `${item} done`);
    const batcher = new GroupCommit<string, string>({
      name: "test",
      batchMax: 100,
      queueMax: 100,
      queuedMs: () => 20,
      commit(items, queueLeftMs) {
        left.push(queueLeftMs);
        return held.commit(items);
      },
      clock,
      metrics: createMetrics(),
    });
    const first = batcher.submit("a");
    await nextTurn();
    const late = expect(batcher.submit("b")).rejects.toThrow(
      new Unavailable("the test queue is too slow", { nothingDone: true }),
    );
    clock.advance(15);
    const inTime = batcher.submit("c");
    clock.advance(5);
    await late;
    await held.finish();
    await held.finish();
    expect(await Promise.all([first, inTime])).toEqual(["a done", "c done"]);
    expect(left).toEqual([20, 15]);
  });

  it("does not count time in which the event loop was late as time in the queue", async () => {
    const { batcher, commits, clock } = setUp({ queuedMs: () => 20 });
    const answers = [batcher.submit("a")];
    await nextTurn();
    answers.push(batcher.submit("b"));
    clock.advanceLate(100);
    // The timer is due.
    await delay(40);
    await commits.finish();
    await commits.finish();
    expect(await Promise.all(answers)).toEqual(["a done", "b done"]);
  });

  it("reports the size and the time of every batch", async () => {
    const { batcher, commits, committed, clock } = setUp();
    void batcher.submit("a");
    void batcher.submit("b");
    await nextTurn();
    clock.advance(250);
    await commits.finish();
    expect(committed).toEqual([{ items: 2, seconds: 0.25 }]);
  });

  it("commits every accepted item exactly once, in order, with any timing", async () => {
    const step = fc.constantFrom("submit", "turn", "finish");
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), fc.integer({ min: 1, max: 5 }), async (steps, batchMax) => {
        const { batcher, commits } = setUp({ batchMax });
        const answers: Promise<string>[] = [];
        for (const each of steps) {
          if (each === "submit") answers.push(batcher.submit(String(answers.length)));
          else if (each === "finish" && commits.underWay > 0) await commits.finish();
          else await nextTurn();
          expect(commits.underWay).toBeLessThanOrEqual(1);
        }
        await nextTurn();
        while (commits.underWay > 0) await commits.finish();
        expect(await Promise.all(answers)).toEqual(answers.map((_, i) => `${i} done`));
        expect(commits.batches.flat()).toEqual(answers.map((_, i) => String(i)));
        expect(Math.max(0, ...commits.batches.map((batch) => batch.length))).toBeLessThanOrEqual(batchMax);
      }),
    );
  });

  it("says of each item once that it is no longer queued: before its batch, or when it is rejected without one", async () => {
    const dequeued: string[] = [];
    const onDequeued = (item: string) => void dequeued.push(item);
    const { batcher, commits, clock } = setUp({ queueMax: 2, queuedMs: () => 20, onDequeued });
    const submit = (item: string) => batcher.submit(item).catch(() => "rejected");
    const answers = [submit("a"), submit("b"), submit("too many")];
    expect(dequeued).toEqual(["too many"]);
    await nextTurn();
    expect(dequeued).toEqual(["too many", "a", "b"]);
    const late = submit("late");
    clock.advance(20);
    expect(await late).toBe("rejected");
    expect(dequeued).toEqual(["too many", "a", "b", "late"]);
    await commits.finish();
    expect(await Promise.all(answers)).toEqual(["a done", "b done", "rejected"]);
    expect(dequeued).toHaveLength(4);
  });

  it("says so too of items that fail with the batch before them", async () => {
    const dequeued: string[] = [];
    const { batcher, commits } = setUp({ onDequeued: (item) => void dequeued.push(item) });
    const first = batcher.submit("a").catch(() => "rejected");
    await nextTurn();
    const behind = batcher.submit("b").catch(() => "rejected");
    await commits.fail(new Error("a fault"));
    expect(await Promise.all([first, behind])).toEqual(["rejected", "rejected"]);
    expect(dequeued).toEqual(["a", "b"]);
  });
});
