import { describe, expect, it } from "vitest";
import { Unavailable } from "../../../src/domain/unavailable.ts";
import { WaitingRoom } from "../../../src/domain/waiting-room.ts";
import type { Permit } from "../../../src/ratelimit/limiter.ts";
import { ones } from "../../support/ones.ts";
import { queue, rule, setUpLimiter, takeNow, timeoutMs } from "./limiter-fixture.ts";

const nothingLeft = { left: 0, contended: true };

describe("a verification under a strict limit", () => {
  it("waits for the ledger if no permit is held, and does not wait while one is", async () => {
    const { limiter, channel } = setUpLimiter();
    const first = queue(limiter);
    expect(channel.sent).toMatchObject([{ subject: "k", waiting: ones(1) }]);
    await channel.grant({ granted: 4, left: 9996 });
    expect(first).toMatchObject({ said: "admitted", permit: { limit: 10_000, remaining: 9999 } });
    for (const remaining of [9998, 9997, 9996]) {
      expect(takeNow(limiter)).toMatchObject({ outcome: "admitted", remaining });
    }
    expect(limiter.held).toBe(0);
    queue(limiter);
  });

  it("is served in order of arrival, each by one permit", async () => {
    const { limiter, channel } = setUpLimiter();
    const waiting = Array.from({ length: 5 }, () => queue(limiter));
    await channel.grant({ granted: 1, outstanding: 1 });
    expect(waiting.map(({ said }) => said)).toEqual(["admitted", "waits", "waits", "waits", "waits"]);
    expect(channel.sent[1]).toMatchObject({ waiting: ones(4) });
    await channel.grant({ granted: 2, outstanding: 3 });
    expect(waiting.map(({ said }) => said)).toEqual(["admitted", "admitted", "admitted", "waits", "waits"]);
  });

  it("is refused from memory once all is spent, until the window ends", async () => {
    const { limiter, channel, clock, pass, alarms } = setUpLimiter();
    const waiting = [queue(limiter), queue(limiter)];
    await channel.grant({ granted: 1, outstanding: 1, left: 0 });
    waiting[0]?.permit?.commit();
    await pass(5);
    await channel.grant({ granted: 0, outstanding: 0, ...nothingLeft });
    expect(waiting.map(({ said }) => said)).toEqual(["admitted", "limited"]);
    const asked = channel.sent.length;
    clock.advance(50_000);
    expect(takeNow(limiter)).toMatchObject({ outcome: "limited", remaining: 0 });
    expect(channel.sent.length).toBe(asked);
    clock.advance(10_000);
    queue(limiter);
    expect(channel.sent[asked]).toMatchObject({ waiting: ones(1) });
    expect(alarms.unsettled).toBe(0);
  });

  it("is told a reset in its own future while the ledger's clock is behind, an hour or more", async () => {
    const { limiter, channel, clock, pass } = setUpLimiter();
    const ledgerNowMs = clock.nowMs() - 3_600_000;
    const behind = { endsInMs: 60_000, endsAtMs: ledgerNowMs + 60_000, clockBehind: true };
    const [admitted, limited] = [queue(limiter), queue(limiter)];
    await channel.grant({ ...behind, granted: 1, left: 0, outstanding: 0 });
    const inMs = Math.ceil(59_999 * 0.999);
    const told = { limit: 10_000, remaining: 0, resetMs: clock.nowMs() + inMs };
    expect(admitted).toMatchObject({ said: "admitted", permit: told });
    admitted.permit?.commit();
    await pass(5);
    const resetMs = clock.nowMs() + inMs;
    await channel.grant({ ...behind, ...nothingLeft });
    expect(limited).toMatchObject({ said: "limited", permit: { remaining: 0, resetMs } });
    clock.advance(900);
    expect(takeNow(limiter)).toMatchObject({ outcome: "limited", remaining: 0, resetMs });
  });

  it("waits for permits that other replicas hold, is refused when none comes, and that is counted", async () => {
    const { limiter, channel, pass, alarms } = setUpLimiter();
    const waiting = queue(limiter);
    const answered: string[] = [];
    for (let tries = 0; waiting.said === "waits" && tries < 100; tries++) {
      await channel.grant({ granted: 0, outstanding: 3, ...nothingLeft });
      answered.push(waiting.said);
      while (waiting.said === "waits" && channel.underWay === 0) await pass(5);
    }
    expect(waiting.said).toBe("limited");
    expect(answered.length).toBeGreaterThan(2);
    expect(alarms.unsettled).toBe(1);
  });

  it("is told that there is no such key, and delays no other", async () => {
    const { limiter, channel } = setUpLimiter();
    const gone = [queue(limiter, "gone"), queue(limiter, "gone")];
    const other = queue(limiter, "other");
    await channel.answer({ outcome: "missing" });
    await channel.grant({ granted: 1 });
    expect([...gone, other].map(({ said }) => said)).toEqual(["missing", "missing", "admitted"]);
    const permit = gone[0]?.permit as Permit;
    permit.commit();
    expect(permit.release()).toMatchObject({ remaining: 0 });
  });

  it("fails as unavailable when no permit came in time: each after its own wait, the others go on waiting", async () => {
    const { limiter, channel, pass } = setUpLimiter();
    const first = queue(limiter);
    await pass(100);
    const second = queue(limiter);
    await pass(timeoutMs - 105);
    expect(first.said).toBe("waits");
    await pass(5);
    expect([first.said, second.said]).toEqual(["no permit came in time", "waits"]);
    // One for each request that had asked. The permit of the one that gave up is there for the next.
    await channel.grant({ granted: 2 });
    expect(second.said).toBe("admitted");
    expect(limiter.held).toBe(1);
  });

  it("waits longer if the event loop was late meanwhile", async () => {
    const { limiter, clock, pass } = setUpLimiter();
    const waiting = queue(limiter);
    clock.advanceLate(700);
    await pass(timeoutMs - 5);
    expect(waiting.said).toBe("waits");
    await pass(5);
    expect(waiting.said).toBe("no permit came in time");
  });
});

describe.each([
  ["lost", (channel: ReturnType<typeof setUpLimiter>["channel"]) => channel.lose()],
  [
    "of unknown outcome",
    (channel: ReturnType<typeof setUpLimiter>["channel"]) => channel.answer({ outcome: "failed", reason: "" }),
  ],
])("an answer that is %s", (_, lose) => {
  it("admits no request; waiting requests are asked for again, and returns and reports are not sent again", async () => {
    const { limiter, channel, pass } = setUpLimiter();
    const first = queue(limiter);
    await channel.grant({ granted: 4 });
    first.permit?.commit();
    limiter.recall("k");
    expect(channel.sent[1]).toMatchObject({ returned: 3, spent: 1, waiting: [] });
    const waiting = [queue(limiter), queue(limiter)];
    await lose(channel);
    expect(waiting.map(({ said }) => said)).toEqual(["waits", "waits"]);
    expect([limiter.held, channel.underWay]).toEqual([0, 0]);
    await pass(60);
    expect(channel.sent.slice(2)).toMatchObject([{ returned: 0, spent: 0, waiting: ones(2) }]);
    await channel.grant({ granted: 2 });
    expect(waiting.map(({ said }) => said)).toEqual(["admitted", "admitted"]);
  });
});

describe("a key whose limit was changed", () => {
  it("is asked for again, and knowledge of the old limit is dropped", async () => {
    const { limiter, channel } = setUpLimiter();
    const denied = queue(limiter);
    await channel.grant({ granted: 0, outstanding: 0, ...nothingLeft });
    expect([denied.said, takeNow(limiter).outcome]).toEqual(["limited", "limited"]);
    limiter.holderChanged("k");
    const waiting = queue(limiter);
    await channel.grant({ granted: 1, limit: 20_000 });
    expect(waiting).toMatchObject({ said: "admitted", permit: { limit: 20_000 } });
  });
});

describe("a key whose limits with names were changed", () => {
  it("is asked for all of them again, and other keys keep what is known", async () => {
    const { limiter, channel } = setUpLimiter();
    const subjects = ["k/a", "k/b", "k2/a", "o/a/k"];
    for (const subject of subjects) {
      void limiter.take(subject, rule);
      await channel.grant({ granted: 0, outstanding: 0, ...nothingLeft });
    }
    const isKnown = () => subjects.filter((subject) => !(limiter.take(subject, rule) instanceof Promise));
    expect(isKnown()).toEqual(subjects);
    limiter.holderChanged("k");
    expect(isKnown()).toEqual(["k2/a", "o/a/k"]);
    limiter.holderChanged("c/k");
    expect(isKnown()).toEqual(["k2/a"]);
  });
});

describe("a peek", () => {
  it("takes nothing, sends nothing and opens nothing", async () => {
    const { limiter, channel, clock } = setUpLimiter({ poolsMax: 1 });
    expect(limiter.peek("unknown", rule)).toEqual({
      limit: 10_000,
      remaining: 10_000,
      resetMs: clock.nowMs() + 60_000,
    });
    queue(limiter);
    await channel.grant({ granted: 3, left: 50 });
    expect(limiter.peek("k", rule)).toMatchObject({ remaining: 52, resetMs: 1_800_000_000_000 });
    expect([limiter.held, channel.sent.length]).toEqual([2, 1]);
  });
});

describe("memory", () => {
  it("holds a bounded number of pools; a further key is unavailable, and that is an alarm", async () => {
    const { limiter, channel, alarms } = setUpLimiter({ poolsMax: 2 });
    for (const subject of ["a", "b"]) queue(limiter, subject);
    for (let i = 0; i < 2; i++) await channel.grant({ granted: 2 });
    expect(() => limiter.take("c", rule)).toThrow(Unavailable);
    expect(alarms.full).toBe(1);
    expect(takeNow(limiter, "a").outcome).toBe("admitted");
  });

  it("leaves the last tenth of the pools to APIs that hold little of them, until windows end", async () => {
    const { limiter, channel, clock, alarms, pass } = setUpLimiter({ poolsMax: 20 });
    const isTaken = (subject: string, apiId: string) => {
      try {
        void limiter.take(subject, rule, 1, apiId);
        return true;
      } catch (error) {
        expect(error).toMatchObject({ name: "Unavailable", message: expect.stringContaining(`"${apiId}"`) });
        return false;
      }
    };
    const big = () => Array.from({ length: 20 }, (_, i) => isTaken(`big ${i}`, "big")).filter(Boolean).length;
    expect([big(), alarms.full]).toEqual([18, 2]);
    expect(["a", "b", "c"].map((subject) => isTaken(subject, "small"))).toEqual([true, true, false]);
    for (let i = 0; i < 20; i++) await channel.grant({ ...nothingLeft, endsInMs: 1000 });
    clock.advance(2000);
    await pass(20);
    expect(isTaken("big 18", "big")).toBe(true);
  });

  it("drops pools whose window is over, and no others", async () => {
    const { limiter, channel, clock, pass } = setUpLimiter({ poolsMax: 2 });
    for (const endsInMs of [1000, 60_000]) {
      queue(limiter, `${endsInMs}`);
      await channel.grant({ ...nothingLeft, endsInMs });
    }
    clock.advance(2000);
    await pass(20);
    queue(limiter, "another");
    expect(takeNow(limiter, "60000").outcome).toBe("limited");
    expect(() => limiter.take("1000", rule)).toThrow(Unavailable);
  });

  it("lets a bounded number wait; one more is unavailable, and delays no other", async () => {
    const waitingRoom = new WaitingRoom(50);
    const { limiter, channel } = setUpLimiter({ waitingRoom });
    const waiting = Array.from({ length: 5 }, () => limiter.take("k", rule));
    expect(() => limiter.take("k", rule), "a tenth of the room for one key").toThrow(Unavailable);
    await channel.grant({ granted: 1 });
    await channel.grant({ granted: 5 });
    await Promise.all(waiting);
    expect(limiter.held).toBe(1);
    expect(takeNow(limiter).outcome).toBe("admitted");
    expect(waitingRoom.taken).toBe(0);
  });
});

describe("a limiter that stops", () => {
  it("returns all permits, waits for the answers, and closes the channel", async () => {
    const { limiter, channel } = setUpLimiter();
    for (const subject of ["a", "b"]) {
      const waiting = queue(limiter, subject);
      await channel.grant({ granted: 3 });
      waiting.permit?.commit();
    }
    let stopped = false;
    const stopping = limiter.stop().then(() => {
      stopped = true;
    });
    expect(channel.sent.slice(2)).toMatchObject([
      { subject: "a", returned: 2, spent: 1 },
      { subject: "b", returned: 2, spent: 1 },
    ]);
    await channel.grant();
    expect([stopped, channel.isClosed]).toEqual([false, false]);
    await channel.grant();
    await stopping;
    expect([limiter.held, channel.isClosed]).toEqual([0, true]);
  });

  it("also returns permits that arrive while it stops", async () => {
    const { limiter, channel } = setUpLimiter();
    queue(limiter);
    const stopping = limiter.stop();
    await channel.grant({ granted: 6 });
    expect(channel.sent.slice(1)).toMatchObject([{ returned: 5, inAdvance: 0 }]);
    expect(channel.isClosed).toBe(false);
    await channel.grant();
    await stopping;
    expect([limiter.held, channel.isClosed]).toEqual([0, true]);
  });

  it("does not wait for a ledger that does not answer", async () => {
    const { limiter, channel, pass } = setUpLimiter();
    queue(limiter);
    const stopping = limiter.stop();
    await pass(300);
    await stopping;
    expect(channel.isClosed).toBe(true);
  });
});
