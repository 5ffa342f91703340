import { describe, expect, it } from "vitest";
import { Deadline, permitTimeoutMs, stageTimeoutMs } from "../../src/domain/deadlines.ts";
import { TestClock } from "../support/test-clock.ts";

describe("a deadline", () => {
  it("passes after its time if the event loop was never late", () => {
    const clock = new TestClock();
    clock.advanceLate(5000);
    const deadline = new Deadline(clock, 450);
    clock.advance(449);
    expect([deadline.leftMs, deadline.hasPassed]).toEqual([1, false]);
    clock.advance(1);
    expect([deadline.leftMs, deadline.hasPassed]).toEqual([0, true]);
  });

  it("does not count time in which the event loop was late", () => {
    const clock = new TestClock();
    const deadline = new Deadline(clock, 450);
    for (let period = 0; period < 10; period++) {
      clock.advance(20);
      clock.advanceLate(80);
      expect(deadline.leftMs).toBe(450 - 20 * (period + 1));
    }
  });

  it("passes after 1.5 s in all, however late the event loop was", () => {
    const clock = new TestClock();
    const deadline = new Deadline(clock, 450);
    clock.advanceLate(1499);
    expect(deadline.leftMs).toBe(1);
    clock.advanceLate(1);
    expect(deadline.hasPassed).toBe(true);
  });

  it("that is longer than that is not extended", () => {
    const clock = new TestClock();
    const deadline = new Deadline(clock, 5000);
    clock.advanceLate(1000);
    expect(deadline.leftMs).toBe(4000);
  });
});

describe("the time that a caller has", () => {
  it("is half a second near the ledger, and follows the path from there", () => {
    expect([0, 100, 410].map(stageTimeoutMs)).toEqual([450, 450, 715]);
    expect([0, 100, 400].map(permitTimeoutMs)).toEqual([450, 450, 1500]);
  });

  it("is 1.5 s where the ledger is in the same process", () => {
    expect(permitTimeoutMs(undefined)).toBe(1500);
  });
});
