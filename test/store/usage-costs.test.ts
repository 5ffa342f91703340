import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Unavailable } from "../../src/domain/unavailable.ts";
import { WaitingRoom } from "../../src/domain/waiting-room.ts";
import type { SpentCounters } from "../../src/store/usage-ledger.ts";
import { nextTurn } from "../batching/next-turn.ts";
import { PlainCounters } from "./plain-counters.ts";
import { setUp } from "./usage-ledger-fixture.ts";

const never = Number.POSITIVE_INFINITY;
const unknown = (reason: string) =>
  new Unavailable(`the counter could not be settled: ${reason}`, { affectsOneKeyOnly: true });

describe("costs", () => {
  it("of one counter are one charge for each run of equal ones, in order of arrival", async () => {
    const { engine, ledger } = setUp({ k: 20 });
    const answers = Promise.all([5, 5, 1, 20, 5, 1].map((cost) => ledger.spend(["k"], cost)));
    await nextTurn();
    await engine.finish();
    expect(engine.batches).toEqual([
      [
        { subject: "k", cost: 5, count: 2 },
        { subject: "k", cost: 1, count: 1 },
        { subject: "k", cost: 20, count: 1 },
        { subject: "k", cost: 5, count: 1 },
        { subject: "k", cost: 1, count: 1 },
      ],
    ]);
    expect(await answers).toEqual([
      { outcome: "spent", remaining: 15 },
      { outcome: "spent", remaining: 10 },
      { outcome: "spent", remaining: 9 },
      { outcome: "exhausted", remaining: 9 },
      { outcome: "spent", remaining: 4 },
      { outcome: "spent", remaining: 3 },
    ]);
  });

  it("of keys that share a counter gather at that one; the refusal says which counter could not pay", async () => {
    const { engine, ledger } = setUp({ a: 3, b: 100, o: 10 });
    const answers = Promise.all([
      ledger.spend(["a", "o"], 2),
      ledger.spend(["a", "o"], 2),
      ledger.spend(["b", "o"], 9),
      ledger.spend(["o"], 1),
      ledger.spend(["none", "o"], 1),
      ledger.spend(["b", "o"], 7),
    ]);
    await nextTurn();
    await engine.finish();
    expect(engine.batches).toEqual([
      [
        { subject: "a", shared: "o", cost: 2, count: 2 },
        { subject: "b", shared: "o", cost: 9, count: 1 },
        { subject: "o", cost: 1, count: 1 },
        { subject: "none", shared: "o", cost: 1, count: 1 },
        { subject: "b", shared: "o", cost: 7, count: 1 },
      ],
    ]);
    expect(await answers).toEqual([
      { outcome: "spent", remaining: 1, sharedRemaining: 8 },
      { outcome: "exhausted", remaining: 1, sharedRemaining: 8, lacking: "own" },
      { outcome: "exhausted", remaining: 100, sharedRemaining: 8, lacking: "shared" },
      { outcome: "spent", remaining: 7 },
      { outcome: "missing" },
      { outcome: "spent", remaining: 93, sharedRemaining: 0 },
    ]);
  });

  it("fail alone: the other runs of the same counter are answered", async () => {
    const { engine, ledger } = setUp({});
    const answers = Promise.allSettled([ledger.spend(["a", "o"], 2), ledger.spend(["b", "o"], 2)]);
    await nextTurn();
    await engine.finishWith([
      { outcome: "failed", reason: "damaged" },
      { outcome: "settled", granted: 1, remaining: 1, sharedRemaining: 2 },
    ]);
    expect(await answers).toEqual([
      { status: "rejected", reason: unknown("damaged") },
      { status: "fulfilled", value: { outcome: "spent", remaining: 1, sharedRemaining: 2 } },
    ]);
  });

  it("beyond 100 runs of one counter wait for the next commit, in order, and count as waiting", async () => {
    const waitingRoom = new WaitingRoom(10_000);
    const { engine, ledger } = setUp({ k: 1_000_000, other: 5 }, waitingRoom);
    // Costs 1 and 2 in turns: every caller is a run of its own.
    const answers = Promise.all(Array.from({ length: 250 }, (_, i) => ledger.spend(["k"], 1 + (i % 2))));
    const other = ledger.spend(["other"], 1);
    await nextTurn();
    expect(waitingRoom.taken).toBe(251);
    for (let batch = 0; batch < 3; batch++) await engine.finish();
    expect(engine.batches.map((batch) => batch.map(({ subject }) => subject === "k").filter(Boolean).length)).toEqual([
      100, 100, 50,
    ]);
    expect(engine.batches[0]).toHaveLength(101);
    const plain = new PlainCounters({ k: 1_000_000 });
    expect(await answers).toEqual(Array.from({ length: 250 }, (_, i) => plain.spend(["k"], 1 + (i % 2))));
    expect(await other).toEqual({ outcome: "spent", remaining: 4 });
    expect(waitingRoom.taken).toBe(0);
  });

  it("beyond 2000 runs wait for the next commit", async () => {
    const counters = Array.from({ length: 60 }, (_, i) => `k${i}`);
    const { engine, ledger } = setUp(Object.fromEntries(counters.map((counter) => [counter, 1000])));
    const answers = Promise.all(
      Array.from({ length: 60 * 50 }, (_, i) =>
        ledger.spend([counters[i % 60] as string], 1 + (Math.floor(i / 60) % 2)),
      ),
    );
    await nextTurn();
    while (engine.underWay > 0) await engine.finish();
    expect(engine.batches.map((batch) => batch.length)).toEqual([2000, 1000]);
    expect((await answers).every(({ outcome }) => outcome === "spent")).toBe(true);
  });

  it("that wait behind a commit which fails are all rejected, also those beyond 100 runs", async () => {
    const waitingRoom = new WaitingRoom(10_000);
    const { engine, ledger } = setUp({ k: 1000 }, waitingRoom);
    const first = Promise.allSettled([ledger.spend(["k"], 1)]);
    await nextTurn();
    const behind = Promise.allSettled(Array.from({ length: 250 }, (_, i) => ledger.spend(["k"], 1 + (i % 2))));
    const away = new Unavailable("away");
    await engine.fail(away);
    for (const outcome of [...(await first), ...(await behind)])
      expect(outcome).toEqual({ status: "rejected", reason: away });
    expect([engine.batches.length, waitingRoom.taken]).toEqual([1, 0]);
    const later = ledger.spend(["k"], 3);
    await nextTurn();
    await engine.finish();
    expect(await later).toEqual({ outcome: "spent", remaining: 997 });
  });

  it("of edges get their results in order, merged with equal neighbours of others", async () => {
    const { engine, ledger } = setUp({ a: 100, o: 20 });
    const answers = Promise.all([
      ledger.spend(["a", "o"], 3),
      ledger.charge("o", { own: "a", cost: 3, count: 2 }, never),
      ledger.charge("o", { cost: 4, count: 3 }, never),
      ledger.charge("o", { cost: 4, count: 1 }, never),
      ledger.charge("o", { own: "a", cost: 1, count: 9 }, never),
      ledger.charge("o", { own: "a", cost: 1, count: 1 }, -1),
    ]);
    await nextTurn();
    await engine.finish();
    expect(engine.batches).toEqual([
      [
        { subject: "a", shared: "o", cost: 3, count: 3 },
        { subject: "o", cost: 4, count: 4 },
        { subject: "a", shared: "o", cost: 1, count: 9 },
      ],
    ]);
    const settled = (granted: number, remaining: number, shared?: number) => ({
      outcome: "settled",
      granted,
      remaining,
      ...(shared !== undefined && { sharedRemaining: shared }),
    });
    expect(await answers).toEqual([
      { outcome: "spent", remaining: 97, sharedRemaining: 17 },
      settled(2, 91, 11),
      settled(2, 3),
      settled(0, 3),
      settled(3, 88, 0),
      { outcome: "notExecuted" },
    ]);
  });

  it("are answered with any timing as if each caller had come alone, in order of arrival at its counter", async () => {
    const counters = fc.constantFrom<SpentCounters>(["k"], ["a", "o"], ["b", "o"], ["o"], ["none", "o"]);
    const spend = fc.record({ counters, cost: fc.integer({ min: 1, max: 20 }) });
    const step = fc.oneof({ weight: 4, arbitrary: spend }, fc.constantFrom("turn" as const, "finish" as const));
    const balance = fc.nat(150);
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { maxLength: 80 }),
        fc.record({ k: balance, a: balance, b: balance, o: balance }),
        async (steps, balances) => {
          const plain = new PlainCounters(balances);
          const { engine, ledger } = setUp(balances);
          const expected: unknown[] = [];
          const answers: Promise<unknown>[] = [];
          for (const each of steps) {
            if (typeof each !== "string") {
              answers.push(ledger.spend(each.counters, each.cost));
              expected.push(plain.spend(each.counters, each.cost));
            } else if (each === "finish" && engine.underWay > 0) await engine.finish();
            else await nextTurn();
          }
          await nextTurn();
          while (engine.underWay > 0) await engine.finish();
          expect(await Promise.all(answers)).toEqual(expected);
          expect(balances).toEqual(plain.balances);
        },
      ),
    );
  });
});
