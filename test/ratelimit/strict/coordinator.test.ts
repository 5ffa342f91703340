import { describe, expect, it } from "vitest";
import { Unavailable } from "../../../src/domain/unavailable.ts";
import { nextTurn } from "../../batching/next-turn.ts";
import { ones } from "../../support/ones.ts";
import { askFor, grantAll, type Settled, settledWith, wantedBy } from "./asks.ts";
import { type HeldEngine, setUpCoordinator as setUp } from "./coordinator-fixture.ts";

describe("Coordinator", () => {
  it("makes one ask of all that wait for a key, and splits what was granted", async () => {
    const { engine, members } = setUp({ answer: () => settledWith({ granted: 7, left: 0 }) });
    const answers = Promise.all([
      members[0].exchange("k", askFor({ waiting: ones(2), inAdvance: 4 })),
      members[1].exchange("k", askFor({ waiting: ones(1), inAdvance: 8 })),
    ]);
    await nextTurn();
    await engine.finish();
    expect(engine.batches).toEqual([[{ subject: "k", ...askFor({ waiting: ones(3), inAdvance: 12, holders: 2 }) }]]);
    const granted = ((await answers) as Settled[]).map((answer) => answer.granted);
    expect(granted).toEqual([4, 3]);
  });

  it("answers everything but the number of permits as the ledger did, to each", async () => {
    const said = settledWith({ gen: 9, granted: 2, left: 3, outstanding: 4, endsInMs: 5, contended: true, limit: 6 });
    const { engine, members } = setUp({ answer: () => said });
    const answers = Promise.all(members.map((member) => member.exchange("k", askFor({ waiting: ones(1) }))));
    await nextTurn();
    await engine.finish();
    expect(await answers).toEqual([
      { ...said, granted: 1 },
      { ...said, granted: 1 },
      { ...said, granted: 0 },
    ]);
  });

  it("has one batch under way in a lane; asks that come meanwhile become the next, one per key", async () => {
    const { engine, members } = setUp();
    const answers: Promise<unknown>[] = [];
    for (const subject of ["k", "k", "l", "k"]) {
      for (const member of members) answers.push(member.exchange(subject, askFor({ waiting: ones(1) })));
      await nextTurn();
      expect(engine.underWay).toBe(1);
    }
    await engine.finish();
    await engine.finish();
    expect(engine.batches.map((batch) => batch.map((ask) => [ask.subject, wantedBy(ask)]))).toEqual([
      [["k", 3]],
      [
        ["k", 6],
        ["l", 3],
      ],
    ]);
    expect(engine.underWay).toBe(0);
    await Promise.all(answers);
  });

  it("keeps every key in its lane, and a lane that hangs keeps only its own waiting", async () => {
    const { engines, members } = setUp({ lanes: 3 });
    const keyIds = Array.from({ length: 300 }, (_, i) => `key_${i}`);
    const answered = new Set<string>();
    const ask = (subject: string) =>
      members[0].exchange(subject, askFor({ waiting: ones(1) })).then(() => answered.add(subject));
    const answers = Promise.all([...keyIds, ...keyIds].map(ask));
    await nextTurn();
    expect(engines.map(({ underWay }) => underWay)).toEqual([1, 1, 1]);
    const keysOf = (engine: HeldEngine) => engine.batches.flat().map(({ subject }) => subject);
    expect(engines.flatMap(keysOf).sort()).toEqual([...keyIds].sort());
    await engines[1]?.finish();
    expect([...answered].sort()).toEqual(keysOf(engines[1] as HeldEngine).sort());
    await engines[0]?.finish();
    await engines[2]?.finish();
    await answers;
  });

  it("recalls permits from the replicas that hold some when another has too few, and only from those", async () => {
    const short = settledWith({ granted: 0, left: 0, outstanding: 5 });
    const given = settledWith({ granted: 5, outstanding: 5 });
    const { engine, members } = setUp();
    const [holder, idle, asker] = members;
    for (const [member, results] of [
      [holder, given],
      [idle, { ...given, granted: 0 }],
    ] as const) {
      const answer = member.exchange("k", askFor({ waiting: ones(1), inAdvance: 4 }));
      await nextTurn();
      await engine.finishWith([results]);
      await answer;
    }
    const before = members.map(({ recalls }) => recalls.length);
    const answer = asker.exchange("k", askFor({ waiting: ones(1) }));
    await nextTurn();
    await engine.finishWith([short]);
    expect(await answer).toMatchObject({ granted: 0 });
    expect(members.map(({ recalls }, i) => recalls.slice(before[i]))).toEqual([["k"], [], []]);
  });

  it.each([
    [
      "no request waits for the permits that were not granted",
      askFor({ waiting: [], inAdvance: 9 }),
      settledWith({ left: 0, outstanding: 5 }),
    ],
    [
      "what others hold does not complete the cost",
      askFor({ waiting: [{ cost: 9, count: 1 }] }),
      settledWith({ left: 3, outstanding: 5 }),
    ],
    ["no replica holds any", askFor({ waiting: ones(1) }), settledWith({ left: 0, outstanding: 0 })],
    [
      "every waiting request got a permit",
      askFor({ waiting: ones(1) }),
      settledWith({ granted: 1, left: 0, outstanding: 6 }),
    ],
  ])("recalls nothing when %s", async (_, ask, result) => {
    const { engine, members } = setUp();
    const held = members[0].exchange("k", askFor({ waiting: ones(1), inAdvance: 4 }));
    await nextTurn();
    await engine.finish();
    await held;
    const answer = members[1].exchange("k", ask);
    await nextTurn();
    await engine.finishWith([result]);
    await answer;
    expect(members.flatMap(({ recalls }) => recalls)).toEqual([]);
  });

  it("recalls nothing from a replica that has left, and counts it no more", async () => {
    const { engine, members } = setUp();
    const held = members[0].exchange("k", askFor({ waiting: ones(5) }));
    await nextTurn();
    await engine.finish();
    await held;
    members[0].close();
    const answer = members[1].exchange("k", askFor({ waiting: ones(1) }));
    await nextTurn();
    await engine.finishWith([settledWith({ left: 0, outstanding: 5 })]);
    await answer;
    expect(engine.batches.flat().map(({ holders }) => holders)).toEqual([1, 1]);
    expect(members[0].recalls).toEqual([]);
  });

  it("rejects all asks of a batch with unknown outcome and those behind it, sends none of them again, and goes on", async () => {
    const { engine, members } = setUp();
    const failing = members.map((member) => member.exchange("k", askFor({ waiting: ones(1), returned: 1 })));
    await nextTurn();
    failing.push(
      members[0].exchange("k", askFor({ waiting: ones(1) })),
      members[0].exchange("l", askFor({ waiting: ones(1) })),
    );
    const settled = Promise.allSettled(failing);
    const reason = new Unavailable("the store does not answer");
    await engine.fail(reason);
    expect(await settled).toEqual(failing.map(() => ({ status: "rejected", reason })));
    expect([engine.batches.length, engine.underWay]).toEqual([1, 0]);

    const next = members[1].exchange("k", askFor({ waiting: ones(2) }));
    await nextTurn();
    await engine.finish();
    expect(await next).toMatchObject({ outcome: "settled", granted: 2 });
    expect(engine.batches[1]).toMatchObject([{ subject: "k", waiting: ones(2), returned: 0 }]);
  });

  it.each([{ outcome: "missing" }, { outcome: "failed", reason: "a bad row" }] as const)(
    "answers all asks for a key that it is $outcome, and disturbs no other",
    async (result) => {
      const { engine, members } = setUp({ answer: (ask) => (ask.subject === "odd" ? result : grantAll(ask)) });
      const odd = Promise.all(members.map((member) => member.exchange("odd", askFor({ waiting: ones(1) }))));
      const fine = members[0].exchange("k", askFor({ waiting: ones(1) }));
      await nextTurn();
      await engine.finish();
      expect(await odd).toEqual([result, result, result]);
      expect(await fine).toMatchObject({ outcome: "settled", granted: 1 });
    },
  );

  it("settles at most 500 keys in one commit", async () => {
    const { engine, members } = setUp();
    const keyIds = Array.from({ length: 1001 }, (_, i) => `key ${i}`);
    const answers = Promise.all(keyIds.map((subject) => members[0].exchange(subject, askFor({ waiting: ones(1) }))));
    await nextTurn();
    for (let batch = 0; batch < 3; batch++) await engine.finish();
    expect(engine.batches.map((batch) => batch.length)).toEqual([500, 500, 1]);
    await answers;
  });

  it.each([
    ["100000 asks of one key", 100_000, () => "hot"],
    ["50000 keys", 50_000, (i: number) => `key ${i}`],
  ])("lets no more than %s wait, and takes more when there is room", async (_, most, keyOf) => {
    const { engine, members, coordinator } = setUp();
    const first = members[0].exchange("first", askFor({}));
    await nextTurn();
    const fitting = most === 100_000 ? most - 1 : most;
    const waiting = Array.from({ length: fitting }, (_, i) =>
      members[0].exchange(keyOf(i), askFor({ waiting: ones(1) })),
    );
    const refused = members[0].exchange("one more", askFor({ waiting: ones(1) }));
    await expect(refused).rejects.toBeInstanceOf(Unavailable);
    while (engine.underWay > 0) await engine.finish();
    await Promise.all([first, ...waiting]);
    expect(engine.batches.flat().map(({ subject }) => subject)).not.toContain("one more");
    const later = members[0].exchange("one more", askFor({ waiting: ones(1) }));
    await nextTurn();
    await engine.finish();
    expect(await later).toMatchObject({ granted: 1 });
    await coordinator.drained();
  });

  it("does not execute an ask that is too old on arrival, nor one that becomes too old before its batch", async () => {
    const { engine, members, clock } = setUp();
    const nowMs = clock.monotonicMs();
    const tooOld = members[0].exchange("k", askFor({ waiting: ones(1) }), { expiresAtMs: nowMs - 1 });
    expect(await tooOld).toEqual({ outcome: "notExecuted" });
    const first = members[0].exchange("k", askFor({ waiting: ones(1) }));
    await nextTurn();
    const waiting = ["k", "l"].map((subject) =>
      members[0].exchange(subject, askFor({ waiting: ones(5), returned: 3 }), { expiresAtMs: nowMs + 500 }),
    );
    const inTime = members[1].exchange("k", askFor({ waiting: ones(2) }), { expiresAtMs: nowMs + 5000 });
    await nextTurn();
    clock.advance(501);
    await engine.finish();
    await engine.finish();
    expect(engine.batches.map((batch) => batch.map((ask) => [ask.subject, wantedBy(ask), ask.returned]))).toEqual([
      [["k", 1, 0]],
      [["k", 2, 0]],
    ]);
    expect(await Promise.all(waiting)).toEqual(Array(2).fill({ outcome: "notExecuted" }));
    expect([await first, await inTime]).toMatchObject([{ granted: 1 }, { granted: 2 }]);
  });

  it("asks the ledger for nothing when all asks of a batch have become too old", async () => {
    const { engine, members, clock } = setUp();
    const expiresAtMs = clock.monotonicMs();
    const first = members[0].exchange("k", askFor({ waiting: ones(1) }));
    await nextTurn();
    const late = members[1].exchange("l", askFor({ waiting: ones(1) }), { expiresAtMs });
    clock.advance(1);
    await engine.finish();
    expect(await late).toEqual({ outcome: "notExecuted" });
    expect([engine.batches.length, engine.underWay]).toEqual([1, 0]);
    await first;
  });

  it("grants nothing to a replica that has gone meanwhile, and takes what it returned", async () => {
    const { engine, members } = setUp();
    const first = members[0].exchange("k", askFor({ waiting: ones(1) }));
    await nextTurn();
    const pending = [
      members[1].exchange("k", askFor({ waiting: ones(5), gen: 1, returned: 3, spent: 2 })),
      members[1].exchange("l", askFor({ waiting: ones(5) })),
    ];
    members[1].close();
    await engine.finish();
    await engine.finish();
    expect(engine.batches[1]).toMatchObject([{ subject: "k", waiting: [], returned: 3, spent: 2 }]);
    expect(await Promise.all(pending)).toMatchObject([{ granted: 0 }, { outcome: "notExecuted" }]);
    await first;
  });

  it("says for how long the ledger has been silent", async () => {
    const { engine, members, coordinator, clock } = setUp();
    clock.advance(700);
    expect(coordinator.silentMs).toBe(700);
    const failing = expect(members[0].exchange("k", askFor({}))).rejects.toThrow("no");
    await nextTurn();
    await engine.fail(new Error("no"));
    await failing;
    expect(coordinator.silentMs).toBe(700);
    const answer = members[0].exchange("k", askFor({}));
    await nextTurn();
    await engine.finish();
    await answer;
    expect(coordinator.silentMs).toBe(0);
  });
});
