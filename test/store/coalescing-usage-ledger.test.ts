import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createMetrics } from "../../src/ambient/metrics.ts";
import { Unavailable } from "../../src/domain/unavailable.ts";
import { WaitingRoom } from "../../src/domain/waiting-room.ts";
import { CoalescingUsageLedger } from "../../src/store/coalescing-usage-ledger.ts";
import type { Charge, ChargeResult } from "../../src/store/usage-ledger.ts";
import { HeldCommits } from "../batching/held-commits.ts";
import { nextTurn } from "../batching/next-turn.ts";
import { TestClock } from "../support/test-clock.ts";

import { setUp, spendTimes } from "./usage-ledger-fixture.ts";

const spent = (remaining: number) => ({ outcome: "spent", remaining });
const exhausted = (remaining: number) => ({ outcome: "exhausted", remaining });
const rejected = (reason: Error) => ({ status: "rejected", reason });

/** Remembers how many of the same key waited when each use came. */
class CountingRoom extends WaitingRoom {
  readonly sameSubject: number[] = [];

  override enter(sameSubject: number): Unavailable | undefined {
    this.sameSubject.push(sameSubject);
    return super.enter(sameSubject);
  }
}

describe("CoalescingUsageLedger", () => {
  it("settles all uses of a key that wait as one charge, counting down to what is left, each value once", async () => {
    const { engine, ledger } = setUp({ k: 10 });
    const answers = spendTimes(ledger, "k", 4);
    await nextTurn();
    await engine.finish();
    expect(engine.batches).toEqual([[{ subject: "k", cost: 1, count: 4 }]]);
    expect(await answers).toEqual([9, 8, 7, 6].map(spent));
  });

  it("grants the first uses and refuses the others when there are too few", async () => {
    const { engine, ledger } = setUp({ k: 2 });
    const answers = spendTimes(ledger, "k", 5);
    await nextTurn();
    await engine.finish();
    expect(await answers).toEqual([spent(1), spent(0), exhausted(0), exhausted(0), exhausted(0)]);
  });

  it("tells every use of a key without a counter that it is missing, and disturbs no other", async () => {
    const { engine, ledger } = setUp({ k: 1 });
    const answers = Promise.all([ledger.spend(["gone"], 1), ledger.spend(["k"], 1), ledger.spend(["gone"], 1)]);
    await nextTurn();
    await engine.finish();
    expect(await answers).toEqual([{ outcome: "missing" }, spent(0), { outcome: "missing" }]);
  });

  it("sends one charge per key and batch; uses that come meanwhile wait and join", async () => {
    const { engine, ledger } = setUp({ a: 100, b: 100 });
    const first = Promise.all([ledger.spend(["a"], 1), ledger.spend(["b"], 1), ledger.spend(["a"], 1)]);
    await nextTurn();
    const second: Promise<unknown>[] = [];
    for (const keyId of ["a", "b", "a", "a"]) {
      second.push(ledger.spend([keyId], 1));
      await nextTurn();
    }
    await engine.finish();
    await engine.finish();
    expect(engine.batches).toEqual([
      [
        { subject: "a", cost: 1, count: 2 },
        { subject: "b", cost: 1, count: 1 },
      ],
      [
        { subject: "a", cost: 1, count: 3 },
        { subject: "b", cost: 1, count: 1 },
      ],
    ]);
    expect(await first).toEqual([spent(99), spent(99), spent(98)]);
    expect(await Promise.all(second)).toEqual([spent(97), spent(98), spent(96), spent(95)]);
  });

  it("keeps one batch under way in each lane, and every key in its own", async () => {
    const lanes = Array.from(
      { length: 3 },
      () => new HeldCommits<Charge, ChargeResult>(() => ({ outcome: "missing" })),
    );
    const engines = lanes.map((lane) => ({ settle: lane.commit }));
    const ledger = new CoalescingUsageLedger(engines, {
      clock: new TestClock(),
      metrics: createMetrics(),
      waitingRoom: new WaitingRoom(1000),
    });
    const keyIds = Array.from({ length: 300 }, (_, i) => `key_${i}`);
    const answers = Promise.all([...keyIds, ...keyIds].map((keyId) => ledger.spend([keyId], 1)));
    await nextTurn();
    expect(lanes.map((lane) => lane.underWay)).toEqual([1, 1, 1]);
    const keysOf = (lane: HeldCommits<Charge, ChargeResult>) => lane.batches.flat().map(({ subject: keyId }) => keyId);
    expect(lanes.flatMap(keysOf).sort()).toEqual([...keyIds].sort());
    for (const lane of lanes) expect(keysOf(lane).length).toBeGreaterThan(50);
    // A lane that hangs keeps only its own keys waiting.
    await lanes[0]?.finish();
    await lanes[1]?.finish();
    await lanes[2]?.finish();
    await answers;
  });

  it("settles at most 500 keys in one commit", async () => {
    const { engine, ledger } = setUp({});
    const answers = Promise.all(Array.from({ length: 1001 }, (_, i) => ledger.spend([`key ${i}`], 1)));
    await nextTurn();
    for (let batch = 0; batch < 3; batch++) await engine.finish();
    expect(engine.batches.map((batch) => batch.length)).toEqual([500, 500, 1]);
    await answers;
  });

  it("rejects every use of a batch with unknown outcome as Unavailable, and goes on", async () => {
    const { engine, ledger } = setUp({ a: 5, b: 5 });
    const answers = Promise.allSettled([ledger.spend(["a"], 1), ledger.spend(["a"], 1), ledger.spend(["b"], 1)]);
    await nextTurn();
    const outage = new Unavailable("the store does not answer");
    await engine.fail(outage);
    expect(await answers).toEqual([rejected(outage), rejected(outage), rejected(outage)]);
    const later = ledger.spend(["a"], 1);
    await nextTurn();
    await engine.finish();
    expect(await later).toEqual(spent(4));
  });

  it("charges nothing that still waited behind a batch that failed", async () => {
    const { engine, ledger } = setUp({ a: 5, b: 5 });
    const sent = Promise.allSettled([ledger.spend(["a"], 1)]);
    await nextTurn();
    const waiting = Promise.allSettled([ledger.spend(["a"], 1), ledger.spend(["b"], 1)]);
    const outage = new Unavailable("the store does not answer");
    await engine.fail(outage);
    expect([...(await sent), ...(await waiting)]).toEqual([rejected(outage), rejected(outage), rejected(outage)]);
    expect(engine.batches).toHaveLength(1);
  });

  it("rejects as Unavailable only the uses of a charge that failed alone", async () => {
    const { engine, ledger } = setUp({});
    const answers = Promise.allSettled([ledger.spend(["bad"], 1), ledger.spend(["good"], 1), ledger.spend(["bad"], 1)]);
    await nextTurn();
    await engine.finishWith([
      { outcome: "failed", reason: "damaged" },
      { outcome: "settled", granted: 1, remaining: 7 },
    ]);
    const reason = new Unavailable("the counter could not be settled: damaged", { affectsOneKeyOnly: true });
    expect(await answers).toEqual([rejected(reason), { status: "fulfilled", value: spent(7) }, rejected(reason)]);
  });

  it("refuses the use that is one too many with Unavailable, and takes more once those before it are settled", async () => {
    const waitingRoom = new WaitingRoom(20);
    const { engine, ledger } = setUp({ k: 3 }, waitingRoom);
    const waiting = Promise.all(Array.from({ length: 20 }, (_, i) => ledger.spend([i < 2 ? "k" : `other ${i}`], 1)));
    await expect(ledger.spend(["one more"], 1)).rejects.toThrow(
      new Unavailable("too many calls are waiting", { nothingDone: true }),
    );
    await nextTurn();
    await engine.finish();
    expect(await waiting).toHaveLength(20);
    expect(waitingRoom.taken).toBe(0);
    const later = ledger.spend(["k"], 1);
    await nextTurn();
    await engine.finish();
    expect(await later).toEqual(spent(0));
  });

  it("takes a place for each use, and says how many of the same key wait that are in no batch yet", async () => {
    const room = new CountingRoom(1000);
    const { engine, ledger } = setUp({ a: 9, b: 9 }, room);
    const answers = ["a", "a", "b"].map((keyId) => ledger.spend([keyId], 1));
    await nextTurn();
    answers.push(...["a", "a", "a"].map((keyId) => ledger.spend([keyId], 1)));
    expect(room.sameSubject).toEqual([0, 1, 0, 0, 1, 2]);
    expect(room.taken).toBe(6);
    await engine.finish();
    expect(room.taken).toBe(3);
    await engine.finish();
    expect(room.taken).toBe(0);
    await Promise.all(answers);
  });

  it("counts as waiting what is too much for one batch, and nothing that was in one", async () => {
    const room = new CountingRoom(10_000);
    const { engine, ledger } = setUp({ k: 1_000_000 }, room);
    // Costs 1 and 2 in turns: 100 of them fill a batch.
    const answers = Array.from({ length: 230 }, (_, i) => ledger.spend(["k"], 1 + (i % 2)));
    await nextTurn();
    answers.push(ledger.spend(["k"], 1));
    expect(room.sameSubject.slice(-2)).toEqual([229, 130]);
    await engine.finish();
    answers.push(ledger.spend(["k"], 1));
    expect(room.sameSubject.at(-1)).toBe(31);
    while (engine.underWay > 0) await engine.finish();
    expect(engine.batches.map((batch) => batch.length)).toEqual([100, 100, 31]);
    expect(await Promise.all(answers)).toHaveLength(232);
    expect(room.taken).toBe(0);
  });

  it("gives back the place of a charge that came too late, once", async () => {
    const room = new CountingRoom(1000);
    const { engine, ledger, clock } = setUp({ a: 9, b: 9 }, room);
    const uses = { cost: 1, count: 1 };
    const first = ledger.spend(["a"], 1);
    await nextTurn();
    const expiresAtMs = clock.monotonicMs();
    const late = [ledger.charge("a", uses, expiresAtMs), ledger.charge("b", uses, expiresAtMs)];
    const inTime = ledger.spend(["a"], 1);
    clock.advance(1);
    await engine.finish();
    expect([await first, ...(await Promise.all(late))]).toEqual([
      spent(8),
      { outcome: "notExecuted" },
      { outcome: "notExecuted" },
    ]);
    expect(room.taken).toBe(1);
    const away = new Unavailable("away");
    const rejection = expect(inTime).rejects.toBe(away);
    await engine.fail(away);
    await rejection;
    expect(room.taken).toBe(0);
  });

  it("takes one place for as many charges of edges as share an entry, and gives it back", async () => {
    const room = new CountingRoom(1000);
    const { engine, ledger } = setUp({ k: 1_000_000 }, room);
    const first = ledger.spend(["k"], 1);
    await nextTurn();
    const charges = Array.from({ length: 150 }, (_, i) =>
      ledger.charge("k", { cost: 1 + (i % 2), count: 3 }, Number.POSITIVE_INFINITY),
    );
    expect(room.taken).toBe(3);
    while (engine.underWay > 0) await engine.finish();
    expect(await first).toEqual(spent(999_999));
    expect(engine.batches.map((batch) => batch.length)).toEqual([1, 100, 50]);
    for (const charge of await Promise.all(charges)) expect(charge).toMatchObject({ outcome: "settled", granted: 3 });
    expect(room.taken).toBe(0);
  });

  it("lets calls for one key take at most a tenth of the waiting room", async () => {
    const { engine, ledger } = setUp({ hot: 1000, other: 1 }, new WaitingRoom(100));
    const flood = Promise.allSettled(Array.from({ length: 1000 }, () => ledger.spend(["hot"], 1)));
    const other = ledger.spend(["other"], 1);
    await nextTurn();
    await engine.finish();
    const outcomes = await flood;
    expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(10);
    expect(outcomes.at(-1)).toEqual(
      rejected(new Unavailable("too many calls are waiting for this key", { nothingDone: true })),
    );
    expect(await other).toEqual(spent(0));
  });

  it("makes room again also after a failure", async () => {
    const waitingRoom = new WaitingRoom(20);
    const { engine, ledger } = setUp({ k: 1 }, waitingRoom);
    const failing = Promise.allSettled(
      Array.from({ length: 20 }, (_, i) => ledger.spend([i < 2 ? "k" : `other ${i}`], 1)),
    );
    await nextTurn();
    await engine.fail(new Unavailable("no"));
    await failing;
    const later = ledger.spend(["k"], 1);
    await nextTurn();
    await engine.finish();
    expect(await later).toEqual(spent(0));
  });

  it("refuses a key more than 50 000 waiting ones with Unavailable, without harm to those", async () => {
    const { engine, ledger } = setUp({ k: 1 });
    const waiting = Promise.allSettled(Array.from({ length: 50_000 }, (_, i) => ledger.spend([`key ${i}`], 1)));
    await expect(ledger.spend(["k"], 1)).rejects.toThrow(Unavailable);
    await nextTurn();
    while (engine.underWay > 0) await engine.finish();
    expect((await waiting).every(({ status }) => status === "fulfilled")).toBe(true);
    const later = ledger.spend(["k"], 1);
    await nextTurn();
    await engine.finish();
    expect(await later).toEqual(spent(0));
  });

  it("is drained only when every use has its answer", async () => {
    const { engine, ledger } = setUp({ k: 1 });
    let drained = false;
    void ledger.spend(["k"], 1);
    void ledger.drained().then(() => {
      drained = true;
    });
    await nextTurn();
    expect(drained).toBe(false);
    await engine.finish();
    expect(drained).toBe(true);
  });

  it("grants exactly what there is and gives no value out twice, with any timing", async () => {
    const step = fc.constantFrom("a", "b", "turn", "finish");
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 80 }), fc.nat(20), async (steps, balance) => {
        const { engine, ledger } = setUp({ a: balance, b: balance });
        const answers: Record<string, Promise<{ outcome: string; remaining?: number }>[]> = { a: [], b: [] };
        for (const each of steps) {
          if (each === "finish" && engine.underWay > 0) await engine.finish();
          else if (each === "a" || each === "b") answers[each]?.push(ledger.spend([each], 1));
          else await nextTurn();
        }
        await nextTurn();
        while (engine.underWay > 0) await engine.finish();
        for (const uses of Object.values(answers)) {
          const settled = await Promise.all(uses);
          const expected = uses.map((_, i) => (i < balance ? spent(balance - 1 - i) : exhausted(0)));
          expect(settled).toEqual(expected);
        }
        for (const batch of engine.batches)
          expect(new Set(batch.map(({ subject: keyId }) => keyId)).size).toBe(batch.length);
      }),
    );
  });
});
