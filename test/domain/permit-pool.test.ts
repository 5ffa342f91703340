import { describe, expect, it } from "vitest";
import { dropFirst } from "../../src/domain/cost-queue.ts";
import { nextAsk, nextDueMs } from "../../src/domain/permit-asking.ts";
import { displayState, PermitPool, recallPermits, remainingWindowMs } from "../../src/domain/permit-pool.ts";
import { settleGrant, settleLost } from "../../src/domain/permit-settling.ts";
import { commitPermits, releasePermits, takePermits } from "../../src/domain/permit-spending.ts";
import type { PermitGrant } from "../../src/domain/permit-window.ts";
import { ones } from "../support/ones.ts";
import { ask, counted, exhausted, heldByOthers, plenty, poolWith, startMs } from "./permit-pool-fixture.ts";

describe("takePermits", () => {
  it("spends a held permit at once, and says of which window it is", () => {
    const { pool } = poolWith(plenty);
    expect(takePermits(pool, startMs + 30)).toEqual({ outcome: "admitted", gen: 7 });
  });

  it("lets exactly as many pass as were granted", () => {
    const { pool } = poolWith(plenty);
    const outcomes = Array.from({ length: 6 }, () => takePermits(pool, startMs + 30).outcome);
    expect(outcomes).toEqual(["admitted", "admitted", "admitted", "admitted", "wait", "wait"]);
  });

  it("queues behind requests that already wait", () => {
    const pool = new PermitPool();
    expect(takePermits(pool, startMs).outcome).toBe("wait");
    expect(takePermits(pool, startMs).outcome).toBe("wait");
    expect(ask(pool, startMs).ask.waiting).toEqual(ones(2));
  });

  it.each([
    ["just before the end by the earliest reckoning", startMs + 49_999 * 0.999 - 0.01, "admitted"],
    ["at that end", startMs + 49_999 * 0.999, "wait"],
    ["after it", startMs + 50_000, "wait"],
  ])("spends no permit outside the window: %s", (_, nowMs, outcome) => {
    const { pool } = poolWith(plenty);
    expect(takePermits(pool, nowMs).outcome).toBe(outcome);
  });

  it("denies from memory once all is spent and no replica holds a permit, until the window ends", () => {
    const { pool, verdict } = poolWith(exhausted);
    expect(counted(verdict)).toEqual({ gen: 7, admitted: 0, denied: 1, isFinal: true, short: undefined });
    expect(takePermits(pool, startMs + 40_000).outcome).toBe("denied");
    expect(nextAsk(pool, startMs + 40_000)).toBeUndefined();
    expect(takePermits(pool, startMs + 50_000).outcome).toBe("wait");
  });
});

describe("nextAsk", () => {
  it("sends nothing without demand", () => {
    const pool = new PermitPool();
    expect(nextAsk(pool, startMs)).toBeUndefined();
    expect(nextDueMs(pool, startMs)).toBeUndefined();
  });

  it("has one message under way at a time", () => {
    const pool = new PermitPool();
    takePermits(pool, startMs);
    ask(pool, startMs);
    takePermits(pool, startMs + 1);
    expect(nextAsk(pool, startMs + 1)).toBeUndefined();
    expect(nextDueMs(pool, startMs + 1)).toBeUndefined();
  });

  it("asks for a block when demand is high, and fetches the next before the last is used up", () => {
    const { pool } = poolWith({ ...plenty, granted: 100 }, 20);
    let nowMs = startMs + 20;
    for (let taken = 0; taken < 98 && nextDueMs(pool, nowMs) !== nowMs; taken++) takePermits(pool, ++nowMs);
    const { ask: prefetch } = ask(pool, nowMs);
    expect(prefetch).toMatchObject({ waiting: [], returned: 0 });
    expect(prefetch.inAdvance).toBeGreaterThan(50);
    expect(takePermits(pool, nowMs).outcome).toBe("admitted");
  });

  it("fetches nothing in advance while other replicas lack permits", () => {
    const { pool } = poolWith({ ...plenty, granted: 30, contended: true }, 20);
    for (let i = 0; i < 29; i++) takePermits(pool, startMs + 20 + i);
    expect(nextAsk(pool, startMs + 48)).toBeUndefined();
    takePermits(pool, startMs + 49);
    expect(ask(pool, startMs + 49).ask).toMatchObject({ waiting: ones(1) });
  });

  it("removes returned permits before the message is made", () => {
    const { pool } = poolWith({ ...plenty, contended: true });
    expect(ask(pool, startMs + 100).ask).toMatchObject({ gen: 7, returned: 4 });
    expect(takePermits(pool, startMs + 100).outcome).toBe("wait");
  });

  it("returns surplus permits in a lull, in a few steps, and in the end all", () => {
    const { pool } = poolWith({ ...plenty, granted: 60, outstanding: 60 });
    for (let i = 0; i < 20; i++) takePermits(pool, startMs + 20 + i);
    const returned: number[] = [];
    const few = 8;
    for (
      let dueMs = nextDueMs(pool, startMs + 40);
      dueMs !== undefined && returned.length < few;
      dueMs = nextDueMs(pool, dueMs)
    ) {
      const message = ask(pool, dueMs);
      expect(message.ask).toMatchObject({ waiting: [], inAdvance: 0 });
      returned.push(message.ask.returned);
      settleGrant(pool, message, { ...plenty, granted: 0 }, dueMs + 10);
    }
    expect(returned.length).toBeLessThan(few);
    expect(returned.reduce((sum, each) => sum + each)).toBe(60 - 1 - 20);
  });

  it("returns all permits at once when recalled, even with demand", () => {
    const { pool } = poolWith({ ...plenty, granted: 60 });
    for (let i = 0; i < 20; i++) takePermits(pool, startMs + 20 + i);
    recallPermits(pool);
    expect(ask(pool, startMs + 40).ask).toMatchObject({ inAdvance: 0, returned: 39 });
  });

  it("returns no permits of a window that is over", () => {
    const { pool } = poolWith(plenty);
    recallPermits(pool);
    expect(nextAsk(pool, startMs + 50_000)).toBeUndefined();
    takePermits(pool, startMs + 50_010);
    expect(ask(pool, startMs + 50_010).ask.returned).toBe(0);
  });

  it("delays an ask to the next window if its answer would come after the end", () => {
    const { pool } = poolWith({ ...exhausted, endsInMs: 1_000 }, 80);
    takePermits(pool, startMs + 999);
    expect(nextAsk(pool, startMs + 999)).toBeUndefined();
    expect(nextDueMs(pool, startMs + 999)).toBe(startMs + 1_000 + 8);
  });
});

describe("settleGrant", () => {
  it("serves the longest waiting first and keeps the rest waiting while the ledger has more permits", () => {
    const pool = new PermitPool();
    for (let i = 0; i < 8; i++) takePermits(pool, startMs);
    const message = ask(pool, startMs);
    expect(counted(settleGrant(pool, message, plenty, startMs + 20))).toMatchObject({
      admitted: 5,
      denied: 0,
      short: undefined,
    });
    expect(ask(pool, startMs + 20).ask.waiting).toEqual(ones(3));
  });

  it("throws away a grant that arrives after the window's end", () => {
    const pool = new PermitPool();
    takePermits(pool, startMs);
    const message = ask(pool, startMs);
    expect(counted(settleGrant(pool, message, { ...plenty, endsInMs: 500 }, startMs + 499))).toMatchObject({
      admitted: 0,
      denied: 0,
    });
    expect(displayState(pool, startMs + 499, 1_000)).toBeUndefined();
    expect(ask(pool, startMs + 499).ask.waiting).toEqual(ones(1));
  });

  it("drops permits and denials of the window before", () => {
    const { pool } = poolWith(exhausted);
    takePermits(pool, startMs + 50_010);
    const message = ask(pool, startMs + 50_010);
    settleGrant(pool, message, { ...plenty, gen: 8, granted: 2 }, startMs + 50_020);
    expect(takePermits(pool, startMs + 50_020)).toEqual({ outcome: "admitted", gen: 8 });
    expect(takePermits(pool, startMs + 50_020).outcome).toBe("wait");
  });

  it.each(["a second copy of an answer", "an answer to a message given up"])("does not count %s", (kind) => {
    const pool = new PermitPool();
    takePermits(pool, startMs);
    const first = ask(pool, startMs);
    if (kind.startsWith("a second")) settleGrant(pool, first, { ...plenty, granted: 1 }, startMs + 20);
    else settleLost(pool, first, startMs + 20);
    takePermits(pool, startMs + 100);
    const second = ask(pool, startMs + 100);
    expect(counted(settleGrant(pool, first, plenty, startMs + 110)).admitted).toBe(0);
    expect(counted(settleGrant(pool, second, { ...plenty, granted: 1 }, startMs + 120)).admitted).toBe(1);
  });

  it("asks again while other replicas hold permits, then denies, and asks more and more rarely", () => {
    const { pool, verdict } = poolWith(heldByOthers, 10);
    expect(counted(verdict)).toMatchObject({ admitted: 0, denied: 0 });
    let nowMs = startMs + 10;
    const deniedAtMs: number[] = [];
    for (let asks = 0; asks < 30; asks++) {
      nowMs = nextDueMs(pool, nowMs) ?? Number.NaN;
      const { denied, isFinal } = counted(settleGrant(pool, ask(pool, nowMs), heldByOthers, nowMs + 10));
      expect(isFinal).toBe(false);
      nowMs += 10;
      if (denied === 0) continue;
      deniedAtMs.push(nowMs);
      while (takePermits(pool, nowMs).outcome === "denied") nowMs += 5;
    }
    const [first = 0, second = 0] = deniedAtMs;
    expect(first - startMs).toBeGreaterThanOrEqual(10 + 50 + 2 * 10);
    expect(first - startMs).toBeLessThan(130);
    expect(second - first).toBeLessThan(120);
    expect((deniedAtMs.at(-1) ?? 0) - (deniedAtMs.at(-2) ?? 0)).toBeGreaterThan(1_000);
  });

  it("does not count its own unfinished uses as spent: they may be released", () => {
    const pool = new PermitPool();
    takePermits(pool, startMs);
    takePermits(pool, startMs);
    const message = ask(pool, startMs);
    const last = { ...exhausted, granted: 1, outstanding: 1 };
    expect(counted(settleGrant(pool, message, last, startMs + 10))).toMatchObject({ admitted: 1, denied: 0 });
    expect(counted(releasePermits(pool, 7, startMs + 12))).toMatchObject({ gen: 7, admitted: 1, denied: 0 });
  });

  it("denies waiting requests once its own uses are charged and reported", () => {
    const pool = new PermitPool();
    takePermits(pool, startMs);
    takePermits(pool, startMs);
    settleGrant(pool, ask(pool, startMs), { ...exhausted, granted: 1, outstanding: 1 }, startMs + 10);
    commitPermits(pool, 7);
    const report = ask(pool, startMs + 15);
    expect(report.ask).toMatchObject({ gen: 7, spent: 1, waiting: ones(1) });
    expect(counted(settleGrant(pool, report, exhausted, startMs + 25))).toMatchObject({ denied: 1, isFinal: true });
  });
});

describe("answers of a ledger whose clock is behind", () => {
  const behind: PermitGrant = { ...exhausted, endsInMs: 60_000, clockBehind: true };
  const memoryMs = 1000;

  it("serve waiting requests, and leave no permits to hold", () => {
    const pool = new PermitPool();
    takePermits(pool, startMs);
    takePermits(pool, startMs);
    const message = ask(pool, startMs);
    dropFirst(pool.waiting, 1);
    const verdict = settleGrant(pool, message, { ...behind, granted: 2, left: 5, outstanding: 2 }, startMs + 20);
    expect(counted(verdict)).toMatchObject({ gen: 7, admitted: 1 });
    expect(takePermits(pool, startMs + 30).outcome).toBe("wait");
  });

  it("do not extend the time in which earlier permits may be spent", () => {
    const { pool } = poolWith({ ...plenty, granted: 50, outstanding: 50 });
    recallPermits(pool);
    const report = ask(pool, startMs + 40_000);
    settleGrant(pool, report, { ...behind, granted: 0, left: 900 }, startMs + 40_020);
    takePermits(pool, startMs + 40_030);
    settleGrant(pool, ask(pool, startMs + 40_030), { ...behind, granted: 1, left: 899 }, startMs + 40_040);
    expect(takePermits(pool, startMs + 50_000).outcome).toBe("wait");
  });

  it("are denials for a second at most, so that it shows soon when the clock is right again", () => {
    const { pool, verdict } = poolWith(behind);
    expect(counted(verdict)).toMatchObject({ denied: 1, isFinal: true });
    expect(takePermits(pool, startMs + memoryMs).outcome).toBe("denied");
    expect(takePermits(pool, startMs + 20 + memoryMs).outcome).toBe("wait");
  });

  it("tell no end in the past, only the time until the end", () => {
    const { pool } = poolWith(behind);
    expect(remainingWindowMs(pool, startMs + 500)).toBeCloseTo(59_999 * 0.999 - 500);
    expect(displayState(pool, startMs + 500, 1_000)).toMatchObject({ limit: 1000, remaining: 0 });
    const { pool: right } = poolWith(exhausted);
    expect(remainingWindowMs(right, startMs + 500)).toBeUndefined();
  });

  it("are no denials beyond the window's duration, even if they tell a later end", () => {
    const { pool } = poolWith({ ...exhausted, endsInMs: 3_600_000 });
    expect(takePermits(pool, startMs + 59_900).outcome).toBe("denied");
    expect(takePermits(pool, startMs + 60_000).outcome).toBe("wait");
  });
});
