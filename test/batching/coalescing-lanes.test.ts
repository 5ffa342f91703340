import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { laneOf } from "../../src/batching/coalescing-lanes.ts";
import { Unavailable } from "../../src/domain/unavailable.ts";
import { fulfilled, groupsOf, itemsOf, type Lane, rejected, setUp, submitAll } from "./lanes-fixture.ts";
import { nextTurn } from "./next-turn.ts";

describe("CoalescingLanes", () => {
  it("commits all items of a key that wait as one group, and answers each by its place in it", async () => {
    const { lanes, lane } = setUp();
    const answers = Promise.all(submitAll(lanes, ["a1", "b1", "a2", "a3"]));
    await nextTurn();
    await lane.finish();
    expect(groupsOf(lane)).toEqual([
      [
        ["a", "a1", "a2", "a3"],
        ["b", "b1"],
      ],
    ]);
    expect(await answers).toEqual(["a[a1,a2,a3]:a1", "b[b1]:b1", "a[a1,a2,a3]:a2", "a[a1,a2,a3]:a3"]);
  });

  it("adds nothing to a group that was sent: later callers form the next one, one group for each key", async () => {
    const { lanes, lane } = setUp();
    const answers = submitAll(lanes, ["a1"]);
    await nextTurn();
    for (const each of ["b1", "a2", "b2", "a3"]) {
      answers.push(...submitAll(lanes, [each]));
      await nextTurn();
      expect(lane.underWay).toBe(1);
    }
    await lane.finish();
    await lane.finish();
    expect(groupsOf(lane)).toEqual([
      [["a", "a1"]],
      [
        ["b", "b1", "b2"],
        ["a", "a2", "a3"],
      ],
    ]);
    expect(await Promise.all(answers)).toEqual([
      "a[a1]:a1",
      "b[b1,b2]:b1",
      "a[a2,a3]:a2",
      "b[b1,b2]:b2",
      "a[a2,a3]:a3",
    ]);
  });

  it("answers no caller before the commit is done", async () => {
    const { lanes, lane } = setUp();
    let answered = false;
    void lanes.submit("a", "a1").then(() => {
      answered = true;
    });
    await nextTurn();
    expect(answered).toBe(false);
    await lane.finish();
    expect(answered).toBe(true);
  });

  it("keeps every key in its lane, and a lane that hangs keeps only its own keys waiting", async () => {
    const { lanes, held } = setUp({ laneCount: 3 });
    const keyIds = Array.from({ length: 90 }, (_, i) => `key_${i}`);
    const answered = new Set<string>();
    const answers = [...keyIds, ...keyIds].map((subject) =>
      lanes.submit(subject, subject).then(() => answered.add(subject)),
    );
    await nextTurn();
    expect(held.map(({ underWay }) => underWay)).toEqual([1, 1, 1]);
    const keysOf = (lane: Lane) => lane.batches.flat().map(({ subject }) => subject);
    expect(held.map(keysOf)).toEqual([0, 1, 2].map((lane) => keyIds.filter((subject) => laneOf(subject, 3) === lane)));
    await held[1]?.finish();
    expect([...answered]).toEqual(keysOf(held[1] as Lane));
    await held[0]?.finish();
    await held[2]?.finish();
    await Promise.all(answers);
  });

  it("commits at most batchMax keys at once, in the order in which they came, however many items they have", async () => {
    const { lanes, lane } = setUp({ batchMax: 2 });
    const answers = Promise.all(submitAll(lanes, ["a1", "a2", "b1", "c1", "d1", "e1", "a3"]));
    await nextTurn();
    for (let batch = 0; batch < 3; batch++) await lane.finish();
    expect(lane.batches.map((batch) => batch.map(({ subject }) => subject))).toEqual([["a", "b"], ["c", "d"], ["e"]]);
    expect(await answers).toHaveLength(7);
  });

  it("refuses the key that the queue has no room for, lets items join keys that wait, and takes more later", async () => {
    const { lanes, lane, waitingLimit } = setUp({ queueMax: 2 });
    const first = submitAll(lanes, ["a1"]);
    await nextTurn();
    const waiting = submitAll(lanes, ["b1", "c1"]);
    const refused = Promise.allSettled(submitAll(lanes, ["d1", "d2"]));
    waiting.push(...submitAll(lanes, ["b2", "c2"]));
    const reason = new Unavailable("the test queue is full", { nothingDone: true });
    expect(await refused).toEqual([rejected(reason), rejected(reason)]);
    await lane.finish();
    const later = lanes.submit("d", "d3");
    await lane.finish();
    await lane.finish();
    expect(await Promise.all([...first, ...waiting])).toHaveLength(5);
    expect(await later).toBe("d[d3]:d3");
    expect(waitingLimit.taken).toBe(0);
  });

  it("takes a place for each caller, and says how many of the same key wait that have not been sent", async () => {
    const { lanes, lane, waitingLimit } = setUp();
    const answers = submitAll(lanes, ["a1", "a2", "b1"]);
    await nextTurn();
    answers.push(...submitAll(lanes, ["a3", "a4", "a5"]));
    expect(waitingLimit.sameSubject).toEqual([0, 1, 0, 0, 1, 2]);
    expect(waitingLimit.taken).toBe(6);
    await lane.finish();
    expect(waitingLimit.taken).toBe(3);
    await lane.finish();
    expect(waitingLimit.taken).toBe(0);
    await Promise.all(answers);
  });

  it("refuses a caller without a place, with the limit's reason, and sends nothing of it", async () => {
    const { lanes, lane, waitingLimit } = setUp();
    waitingLimit.max = 2;
    const answers = Promise.all(submitAll(lanes, ["a1", "a2"]));
    await expect(lanes.submit("a", "a3")).rejects.toThrow(new Unavailable("no place"));
    await expect(lanes.submit("b", "b1")).rejects.toThrow(new Unavailable("no place"));
    await nextTurn();
    await lane.finish();
    await answers;
    expect(groupsOf(lane)).toEqual([[["a", "a1", "a2"]]]);
  });

  it("fails all callers of a commit that threw and all behind it, sends none of them again, and goes on", async () => {
    const { lanes, lane, waitingLimit } = setUp();
    const failing = submitAll(lanes, ["a1", "a2", "b1"]);
    await nextTurn();
    failing.push(...submitAll(lanes, ["a3", "c1"]));
    const settled = Promise.allSettled(failing);
    const reason = new Unavailable("the store does not answer");
    await lane.fail(reason);
    expect(await settled).toEqual(failing.map(() => rejected(reason)));
    expect([lane.batches.length, lane.underWay, waitingLimit.taken]).toEqual([1, 0, 0]);
    // None of these joins a group that has failed.
    const later = Promise.all(submitAll(lanes, ["a4", "c2"]));
    await nextTurn();
    await lane.finish();
    expect(await later).toEqual(["a[a4]:a4", "c[c2]:c2"]);
  });

  it.each([[[]], [["a"]], [["a", "b", "c"]]])("fails loudly when two groups come back as %j", async (results) => {
    const { lanes, lane, waitingLimit } = setUp();
    const answers = Promise.allSettled(submitAll(lanes, ["a1", "b1", "a2"]));
    await nextTurn();
    await lane.finishWith(results);
    const reason = new Error(`test: ${results.length} results for 2 items`);
    expect(await answers).toEqual([rejected(reason), rejected(reason), rejected(reason)]);
    expect(waitingLimit.taken).toBe(0);
  });

  it.each([
    ["one answer too few", "one less", new Error("test: 1 answers for 2 callers")],
    ["answers that cannot be told", "bad", new Unavailable("a bad row")],
  ])("fails the callers of a group with %s, and disturbs no other", async (_, result, reason) => {
    const { lanes, lane, waitingLimit } = setUp();
    const answers = Promise.allSettled(submitAll(lanes, ["a1", "b1", "a2"]));
    await nextTurn();
    await lane.finishWith([result, "fine"]);
    expect(await answers).toEqual([rejected(reason), fulfilled("fine:b1"), rejected(reason)]);
    expect(waitingLimit.taken).toBe(0);
  });

  describe("with a weight", () => {
    /** The items are a key and a digit: equal digits behind each other weigh nothing. */
    const weight = { of: (item: string, before?: string) => Number(item !== before), groupMax: 2, commitMax: 3 };

    it("commits what is too heavy for one group in the next ones, in order", async () => {
      const { lanes, lane, waitingLimit } = setUp({ weight });
      const items = ["a1", "a1", "a2", "a1", "a2", "a3", "a3", "b1"];
      const answers = Promise.all(submitAll(lanes, items));
      await nextTurn();
      // Of the same key all wait that have not been sent, in whichever group.
      void lanes.submit("a", "a3");
      expect(waitingLimit.sameSubject).toEqual([0, 1, 2, 3, 4, 5, 6, 0, 4]);
      while (lane.underWay > 0) await lane.finish();
      expect(groupsOf(lane)).toEqual([
        [
          ["a", "a1", "a1", "a2"],
          ["b", "b1"],
        ],
        [["a", "a1", "a2"]],
        [["a", "a3", "a3", "a3"]],
      ]);
      expect((await answers).map((answer) => answer.split(":")[1])).toEqual(items);
      expect(waitingLimit.taken).toBe(0);
    });

    it("commits at most so much at once", async () => {
      const { lanes, lane } = setUp({ weight });
      const answers = Promise.all(submitAll(lanes, ["a1", "b1", "b2", "c1", "d1", "d2"]));
      await nextTurn();
      while (lane.underWay > 0) await lane.finish();
      expect(groupsOf(lane)).toEqual([
        [
          ["a", "a1"],
          ["b", "b1", "b2"],
        ],
        [
          ["c", "c1"],
          ["d", "d1", "d2"],
        ],
      ]);
      expect(await answers).toHaveLength(6);
    });

    it("fails groups that wait for their turn with the commit before them, and then goes on", async () => {
      const { lanes, lane, waitingLimit } = setUp({ weight });
      const first = submitAll(lanes, ["a1"]);
      await nextTurn();
      const failing = Promise.allSettled([...first, ...submitAll(lanes, ["a1", "a2", "a1", "a2", "a1"])]);
      const away = new Unavailable("away");
      await lane.fail(away);
      expect(await failing).toEqual(Array(6).fill(rejected(away)));
      expect([lane.underWay, waitingLimit.taken]).toEqual([0, 0]);
      const later = lanes.submit("a", "a3");
      await nextTurn();
      await lane.finish();
      expect(await later).toBe("a[a3]:a3");
    });
  });

  it("is drained when every caller in every lane has an answer, and not before", async () => {
    const { lanes, held } = setUp({ laneCount: 2, batchMax: 1 });
    const answered: string[] = [];
    for (const subject of ["a", "b", "c", "d"]) void lanes.submit(subject, subject).then(() => answered.push(subject));
    let drained = false;
    void lanes.drained().then(() => {
      drained = true;
    });
    await nextTurn();
    while (held.some(({ underWay }) => underWay > 0)) {
      expect(drained).toBe(false);
      for (const lane of held) if (lane.underWay > 0) await lane.finish();
    }
    expect(drained).toBe(true);
    expect(answered.sort()).toEqual(["a", "b", "c", "d"]);
    await lanes.drained();
  });

  it("answers every caller once and in order, commits every item once or never, and gives back every place, with any timing", async () => {
    const step = fc.constantFrom("a", "b", "c", "turn", "finish", "fail");
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 80 }), fc.integer({ min: 1, max: 3 }), async (steps, batchMax) => {
        const { lanes, lane, waitingLimit } = setUp({ batchMax, queueMax: 2 });
        const outcomes: Promise<string>[] = [];
        const submitted: string[] = [];
        const end = new Unavailable("it fails");
        for (const each of steps) {
          if (each === "finish" && lane.underWay > 0) await lane.finish();
          else if (each === "fail" && lane.underWay > 0) await lane.fail(end);
          else if (each.length === 1) {
            const item = `${each}${submitted.length}`;
            submitted.push(item);
            outcomes.push(lanes.submit(each, item).catch((error: Error) => error.message));
          } else await nextTurn();
          expect(lane.underWay).toBeLessThanOrEqual(1);
        }
        await nextTurn();
        while (lane.underWay > 0) await lane.finish();
        await lanes.drained();
        expect(waitingLimit.taken).toBe(0);
        const sent = lane.batches.flat();
        const sentItems = sent.flatMap(itemsOf);
        expect(new Set(sentItems).size).toBe(sentItems.length);
        for (const batch of lane.batches) expect(new Set(batch.map(({ subject }) => subject)).size).toBe(batch.length);
        for (const subject of ["a", "b", "c"]) {
          const own = sentItems.filter((item) => item.startsWith(subject));
          expect(own).toEqual(submitted.filter((item) => own.includes(item)));
        }
        for (const [i, outcome] of (await Promise.all(outcomes)).entries()) {
          const item = submitted[i] as string;
          const group = sent.find((each) => itemsOf(each).includes(item));
          const answer = group && `${group.subject}[${itemsOf(group).join()}]:${item}`;
          expect([answer, "it fails", "the test queue is full"]).toContain(outcome);
          if (outcome === "the test queue is full") expect(group).toBeUndefined();
        }
      }),
    );
  });
});
