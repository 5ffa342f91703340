import { describe, expect, it } from "vitest";
import { dropFirst } from "../../src/domain/cost-queue.ts";
import { nextAsk, nextDueMs } from "../../src/domain/permit-asking.ts";
import {
  displayState,
  dropPermits,
  isIdle,
  onLimitChanged,
  PermitPool,
  recallPermits,
} from "../../src/domain/permit-pool.ts";
import { settleGrant, settleLost } from "../../src/domain/permit-settling.ts";
import { commitPermits, releasePermits, takePermits } from "../../src/domain/permit-spending.ts";
import { ones } from "../support/ones.ts";
import { ask, counted, endsAtMs, exhausted, plenty, poolWith, startMs } from "./permit-pool-fixture.ts";

describe("settleLost", () => {
  it("brings nothing back and sends nothing again", () => {
    const { pool } = poolWith({ ...plenty, contended: true });
    commitPermits(pool, 7);
    const message = ask(pool, startMs + 100);
    expect(message.ask).toMatchObject({ returned: 4, spent: 1 });
    settleLost(pool, message, startMs + 200);
    expect(takePermits(pool, startMs + 300).outcome).toBe("wait");
    expect(ask(pool, startMs + 300).ask).toMatchObject({ waiting: ones(1), returned: 0, spent: 0 });
  });

  it("asks again for waiting requests, after a pause", () => {
    const pool = new PermitPool();
    takePermits(pool, startMs);
    settleLost(pool, ask(pool, startMs), startMs + 10);
    takePermits(pool, startMs + 10);
    expect(nextAsk(pool, startMs + 10)).toBeUndefined();
    expect(nextDueMs(pool, startMs + 10)).toBe(startMs + 60);
    expect(ask(pool, startMs + 60).ask.waiting).toEqual(ones(2));
  });
});

describe("displayState", () => {
  it("shows a request that is refused less than it costs, and nobody more than that from then on", () => {
    const { pool } = poolWith(plenty);
    const before = displayState(pool, startMs + 30, 1_000)?.remaining as number;
    expect(displayState(pool, startMs + 30, 1_000, before + 1)?.remaining).toBe(before);
    expect(displayState(pool, startMs + 30, 1_000, before - 5)?.remaining).toBe(before - 6);
    expect(displayState(pool, startMs + 30, 1_000)?.remaining).toBe(before - 6);
    expect(displayState(pool, startMs + 30, 1_000, 1)?.remaining).toBe(0);
  });
});

describe("releasePermits", () => {
  it("lets another request use the permit", () => {
    const { pool } = poolWith({ ...plenty, granted: 1 });
    releasePermits(pool, 7, startMs + 30);
    expect(takePermits(pool, startMs + 30)).toEqual({ outcome: "admitted", gen: 7 });
  });

  it.each([
    ["of another window", 6, startMs + 30],
    ["whose window is over", 7, startMs + 50_000],
  ])("drops a permit %s", (_, gen, nowMs) => {
    const { pool } = poolWith({ ...plenty, granted: 1 });
    expect(counted(releasePermits(pool, gen, nowMs)).admitted).toBe(0);
    expect(takePermits(pool, nowMs).outcome).toBe("wait");
  });

  it("takes back no more than is in use", () => {
    const { pool } = poolWith({ ...plenty, granted: 1 });
    commitPermits(pool, 7);
    releasePermits(pool, 7, startMs + 30);
    expect(takePermits(pool, startMs + 30).outcome).toBe("wait");
  });
});

describe("a change of the key", () => {
  it("of its limit clears denials", () => {
    const { pool } = poolWith(exhausted);
    onLimitChanged(pool);
    expect(takePermits(pool, startMs + 30).outcome).toBe("wait");
  });

  it("of its limit is shown at once, with what was granted in the window", () => {
    const { pool } = poolWith(plenty);
    onLimitChanged(pool);
    expect(displayState(pool, startMs + 30, 2_000)).toEqual({ limit: 2_000, remaining: 1_904, resetMs: endsAtMs });
    expect(displayState(pool, startMs + 30, 50)).toEqual({ limit: 50, remaining: 0, resetMs: endsAtMs });
    recallPermits(pool);
    settleGrant(pool, ask(pool, startMs + 30), { ...plenty, granted: 0, limit: 2_000, left: 1_900 }, startMs + 40);
    // The ledger's own word counts again, also where the caller has not heard of the change.
    expect(displayState(pool, startMs + 40, 1_000)).toMatchObject({ limit: 2_000 });
  });

  it("that leaves its limit as it was lets nothing rise that was shown, and one of its limit by as much", () => {
    const { pool } = poolWith(plenty);
    const shown = () => displayState(pool, startMs + 30, 1_000)?.remaining;
    const before = shown() as number;
    onLimitChanged(pool);
    // Others have given permits back.
    settleGrant(pool, ask(pool, startMs + 30), { ...plenty, granted: 0, left: 950 }, startMs + 30);
    expect(shown()).toBe(before);
    onLimitChanged(pool);
    takePermits(pool, startMs + 30);
    settleGrant(pool, ask(pool, startMs + 30), { ...plenty, granted: 1, limit: 1_100, left: 1_050 }, startMs + 30);
    expect(shown()).toBe(before + 100);
  });

  it("lets nothing rise that was shown while the ledger had not told of it yet", () => {
    const { pool } = poolWith(exhausted);
    onLimitChanged(pool);
    expect(displayState(pool, startMs + 30, 1_000)?.remaining).toBe(0);
    takePermits(pool, startMs + 30);
    settleGrant(pool, ask(pool, startMs + 30), { ...plenty, granted: 1, left: 3 }, startMs + 30);
    expect(displayState(pool, startMs + 30, 1_000)?.remaining).toBe(0);
  });

  it("of its limit outdates permits: none is spent, and the next message returns all of them, also those on their way", () => {
    const { pool } = poolWith(plenty);
    onLimitChanged(pool);
    const before = ask(pool, startMs + 30);
    expect(before.ask).toMatchObject({ waiting: [], returned: 4 });
    onLimitChanged(pool);
    expect(takePermits(pool, startMs + 30).outcome).toBe("wait");
    expect(counted(settleGrant(pool, before, { ...plenty, granted: 10 }, startMs + 40)).admitted).toBe(0);
    const after = ask(pool, startMs + 40);
    expect(after.ask).toMatchObject({ waiting: ones(1), returned: 10 });
    expect(counted(settleGrant(pool, after, { ...plenty, granted: 1, limit: 50 }, startMs + 50)).admitted).toBe(1);
  });

  it("of its limit outdates permits in use: one that was not used is returned", () => {
    const { pool } = poolWith({ ...plenty, granted: 1 });
    onLimitChanged(pool);
    expect(takePermits(pool, startMs + 30).outcome).toBe("wait");
    expect(counted(releasePermits(pool, 7, startMs + 30)).admitted).toBe(0);
    expect(ask(pool, startMs + 30).ask).toMatchObject({ waiting: ones(1), returned: 1 });
  });

  it("of its limit is not denied by an answer from before it", () => {
    const pool = new PermitPool();
    takePermits(pool, startMs);
    const message = ask(pool, startMs);
    onLimitChanged(pool);
    expect(counted(settleGrant(pool, message, exhausted, startMs + 10))).toMatchObject({ denied: 0 });
    expect(displayState(pool, startMs + 10, 2_000)?.limit).toBe(2_000);
    const again = ask(pool, startMs + 10);
    expect(again.ask.waiting).toEqual(ones(1));
    expect(counted(settleGrant(pool, again, { ...plenty, limit: 2_000 }, startMs + 20)).admitted).toBe(1);
  });

  it("to deleted drops permits, those on their way too", () => {
    const { pool } = poolWith(plenty);
    recallPermits(pool);
    const message = ask(pool, startMs + 30);
    dropPermits(pool);
    expect(counted(settleGrant(pool, message, plenty, startMs + 40)).admitted).toBe(0);
    expect(counted(releasePermits(pool, 7, startMs + 40)).admitted).toBe(0);
    expect(isIdle(pool, startMs + 40)).toBe(true);
    expect(takePermits(pool, startMs + 40).outcome).toBe("wait");
  });
});

describe("a pool", () => {
  it("is kept for a while after its window, so that what it has shown of it cannot rise", () => {
    const { pool } = poolWith(exhausted);
    expect(displayState(pool, startMs + 50_000, 1_000)).toBeUndefined();
    expect(isIdle(pool, startMs + 50_000)).toBe(false);
    expect(isIdle(pool, startMs + 50_900)).toBe(false);
    expect(isIdle(pool, startMs + 51_000)).toBe(true);
  });
});

describe("displayState", () => {
  it("shows what is left and held, and the ledger's end of the window", () => {
    const { pool } = poolWith(plenty);
    expect(displayState(pool, startMs + 30, 1_000)).toEqual({ limit: 1_000, remaining: 904, resetMs: endsAtMs });
  });

  it("never shows more than before in one window, also when others give permits back", () => {
    const { pool } = poolWith(plenty);
    takePermits(pool, startMs + 30);
    expect(displayState(pool, startMs + 30, 1_000)?.remaining).toBe(903);
    recallPermits(pool);
    settleGrant(pool, ask(pool, startMs + 31), { ...plenty, granted: 0, left: 950 }, startMs + 40);
    expect(displayState(pool, startMs + 40, 1_000)?.remaining).toBe(903);
  });

  it("shows what a request took and gives back, and no more than that", () => {
    const { pool } = poolWith(plenty);
    takePermits(pool, startMs + 30, 3);
    expect(displayState(pool, startMs + 30, 1_000)?.remaining).toBe(901);
    releasePermits(pool, 7, startMs + 31, 3);
    expect(displayState(pool, startMs + 31, 1_000)?.remaining).toBe(904);
    recallPermits(pool);
    settleGrant(pool, ask(pool, startMs + 31), { ...plenty, granted: 0, left: 950 }, startMs + 40);
    expect(displayState(pool, startMs + 40, 1_000)?.remaining).toBe(904);
  });

  it("is unknown when no window is open", () => {
    expect(displayState(new PermitPool(), startMs, 1_000)).toBeUndefined();
    expect(displayState(poolWith(plenty).pool, startMs + 50_000, 1_000)).toBeUndefined();
  });
});

describe("a request that gives up", () => {
  it("asks for one permit less", () => {
    const pool = new PermitPool();
    takePermits(pool, startMs);
    takePermits(pool, startMs);
    dropFirst(pool.waiting, 1);
    expect(ask(pool, startMs).ask.waiting).toEqual(ones(1));
  });
});
