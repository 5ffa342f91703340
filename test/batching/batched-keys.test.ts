import { describe, expect, it } from "vitest";
import { laneOf } from "../../src/batching/keyed-batcher.ts";
import { Unavailable } from "../../src/domain/unavailable.ts";
import { batchesOf, fulfilled, type Lane, rejected, setUp, TestEntry } from "./keyed-batcher-fixture.ts";
import { nextTurn } from "./next-turn.ts";

describe("the entry of a key", () => {
  it("has all callers of the key that wait, and each is answered by its own part of the result", async () => {
    const { submitAll, lane } = setUp();
    const answers = Promise.all(submitAll(["a1", "b1", "a2", "a3"]));
    await nextTurn();
    await lane.finish();
    expect(batchesOf(lane)).toEqual([["a1,a2,a3", "b1"]]);
    expect(await answers).toEqual(["a[a1,a2,a3]:a1", "b[b1]:b1", "a[a1,a2,a3]:a2", "a[a1,a2,a3]:a3"]);
  });

  it("gets nobody more once it is in a batch: later callers form the next one, one entry for each key", async () => {
    const { submit, lane } = setUp();
    const answers = [submit("a1")];
    await nextTurn();
    for (const each of ["b1", "a2", "b2", "a3"]) {
      answers.push(submit(each));
      await nextTurn();
      expect(lane.underWay).toBe(1);
    }
    await lane.finish();
    await lane.finish();
    expect(batchesOf(lane)).toEqual([["a1"], ["b1,b2", "a2,a3"]]);
    expect(await Promise.all(answers)).toEqual([
      "a[a1]:a1",
      "b[b1,b2]:b1",
      "a[a2,a3]:a2",
      "b[b1,b2]:b2",
      "a[a2,a3]:a3",
    ]);
  });

  it.each([
    ["taken into a batch", { queueMax: 9 }, (lane: Lane) => lane.finish()],
    ["rejected behind a batch that failed", { queueMax: 9 }, (lane: Lane) => lane.fail(new Error("no"))],
    ["rejected because the queue is full", { queueMax: 0 }, undefined],
  ])("is found as long as it waits, and no longer when it was %s", async (_, bounds, end) => {
    const { batcher, submit, submitAlone, lane } = setUp({ queueMax: bounds.queueMax });
    if (end !== undefined) {
      submitAlone("in front").catch(() => {});
      await nextTurn();
    }
    submit("a1").catch(() => {});
    expect(batcher.waiting("a")?.items).toEqual(end && ["a1"]);
    await end?.(lane);
    expect(batcher.waiting("a")).toBeUndefined();
  });

  it("is no longer found when it was rejected because its deadline passed", async () => {
    const { batcher, submit, clock } = setUp({ queuedMs: 20 });
    void submit("b1");
    await nextTurn();
    const late = submit("a1");
    clock.advance(20);
    await expect(late).rejects.toThrow("the test queue is too slow");
    expect(batcher.waiting("a")).toBeUndefined();
  });

  it("always goes to the lane of its key, and a lane that hangs keeps only its own keys waiting", async () => {
    const { batcher, held, submit } = setUp({ laneCount: 3 });
    const letters = Array.from({ length: 90 }, (_, i) => String.fromCharCode(200 + i));
    const answered = new Set<string>();
    const answers = [...letters, ...letters].map((letter) => submit(letter).then(() => answered.add(letter)));
    await nextTurn();
    expect(held.map(({ underWay }) => underWay)).toEqual([1, 1, 1]);
    const keysOf = (lane: Lane) => lane.batches.flat().map(({ key }) => key);
    expect(held.map(keysOf)).toEqual([0, 1, 2].map((lane) => letters.filter((letter) => laneOf(letter, 3) === lane)));
    await held[1]?.finish();
    expect([...answered]).toEqual(keysOf(held[1] as Lane));
    await held[0]?.finish();
    await held[2]?.finish();
    await Promise.all(answers);
    await batcher.drained();
  });

  it("counts once in a batch and in the queue, however many callers it has", async () => {
    const { submit, submitAll, lane } = setUp({ batchMax: 2, queueMax: 2 });
    const first = submit("a1");
    await nextTurn();
    const waiting = submitAll(["b1", "c1"]);
    const refused = Promise.allSettled(submitAll(["d1", "d2"]));
    waiting.push(...submitAll(["b2", "c2"]));
    const reason = new Unavailable("the test queue is full", { nothingDone: true });
    expect(await refused).toEqual([rejected(reason), rejected(reason)]);
    await lane.finish();
    const later = submit("d3");
    await lane.finish();
    await lane.finish();
    expect(await Promise.all([first, ...waiting])).toHaveLength(5);
    expect(await later).toBe("d[d3]:d3");
    expect(batchesOf(lane)).toEqual([["a1"], ["b1,b2", "c1,c2"], ["d3"]]);
  });

  it("fails alone if its result cannot be handed out", async () => {
    const { submitAll, lane } = setUp();
    const answers = Promise.allSettled(submitAll(["a1", "b1", "a2"]));
    await nextTurn();
    await lane.finishWith(["bad", "fine"]);
    const reason = new Unavailable("a bad row");
    expect(await answers).toEqual([rejected(reason), fulfilled("fine:b1"), rejected(reason)]);
  });

  it("is settled by its own result if that is a promise", async () => {
    const reason = new Error("lost");
    const slow = Promise.withResolvers<string>();
    const results = [Promise.reject(reason), slow.promise, "now", Promise.resolve("bad")];
    const { submitAll } = setUp({ broken: (options) => ({ ...options, commits: [async () => results] }) });
    const [lost, late, now, bad] = submitAll(["a1", "b1", "c1", "d1"]);
    await expect(lost).rejects.toBe(reason);
    expect(await now).toBe("now:c1");
    await expect(bad).rejects.toThrow("a bad row");
    slow.resolve("later");
    expect(await late).toBe("later:b1");
  });
});

describe("an entry that is taken into a batch", () => {
  const never = (entry: TestEntry) => !entry.items.some((item) => item.endsWith("late"));

  it("is not committed if nobody wants it any more, and the others get their own results", async () => {
    const { submitAll, lane } = setUp({ take: never });
    const answers = Promise.race(submitAll(["a late", "c late"]));
    const wanted = Promise.all(submitAll(["b1", "d1"]));
    await nextTurn();
    await lane.finish();
    expect(batchesOf(lane)).toEqual([["b1", "d1"]]);
    expect(await wanted).toEqual(["b[b1]:b1", "d[d1]:d1"]);
    // Whoever takes it answers its callers.
    expect(await Promise.race([answers, nextTurn()])).toBeUndefined();
  });

  it("is taken by the time of its batch, not of its arrival", async () => {
    const times: number[] = [];
    const take = (_: TestEntry, nowMs: number) => times.push(nowMs) > 0;
    const { submit, lane, clock } = setUp({ take });
    const startMs = clock.monotonicMs();
    void submit("a1");
    await nextTurn();
    void submit("b1");
    clock.advance(70);
    await lane.finish();
    expect(times).toEqual([startMs, startMs + 70]);
  });

  it("makes no commit if the whole batch is unwanted, and the next batch is committed", async () => {
    const { batcher, submit, submitAll, lane, committed } = setUp({ take: never, batchMax: 2 });
    void submitAll(["a late", "b late"]);
    const wanted = submit("c1");
    await nextTurn();
    await lane.finish();
    expect(batchesOf(lane)).toEqual([["c1"]]);
    expect(await wanted).toBe("c[c1]:c1");
    expect(committed).toHaveLength(1);
    void submit("d late");
    await batcher.drained();
    expect(lane.batches).toHaveLength(1);
  });

  it("can leave callers for a later batch, in which they stay in order and fail with the batch before them", async () => {
    const take = (entry: TestEntry) => {
      const later = new TestEntry(entry.key);
      later.callers.push(...entry.callers.splice(2));
      if (later.callers.length > 0) batcher.add(later);
      return true;
    };
    const { batcher, submit, submitAll, lane } = setUp({ take });
    const items = ["a1", "a2", "a3", "b1", "a4", "a5"];
    const answers = Promise.all(submitAll(items));
    await nextTurn();
    const joined = submit("a6");
    while (lane.underWay > 0) await lane.finish();
    expect(batchesOf(lane)).toEqual([["a1,a2", "b1"], ["a3,a4"], ["a5,a6"]]);
    expect((await answers).map((answer) => answer.split(":")[1])).toEqual(items);
    expect(await joined).toBe("a[a5,a6]:a6");
    const failing = Promise.allSettled(submitAll(items));
    await nextTurn();
    const reason = new Unavailable("away");
    await lane.fail(reason);
    expect(await failing).toEqual(items.map(() => rejected(reason)));
    expect([lane.underWay, batchesOf(lane).length]).toEqual([0, 4]);
  });
});
