import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { withTimeout } from "../../src/ambient/with-timeout.ts";
import { Deadline } from "../../src/domain/deadlines.ts";
import { TestClock } from "../support/test-clock.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function setUp() {
  const clock = new TestClock();
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const waiting = { said: "waits" };
  withTimeout(promise, new Deadline(clock, 450), () => new Error("too late")).then(
    (answer) => {
      waiting.said = answer;
    },
    (error: Error) => {
      waiting.said = error.message;
    },
  );
  const pass = async (ms: number) => {
    clock.advance(ms);
    await vi.advanceTimersByTimeAsync(ms);
  };
  return { clock, resolve, reject, waiting, pass };
}

describe("work with a deadline", () => {
  it("is answered, or given up when the deadline has passed", async () => {
    const [inTime, late] = [setUp(), setUp()];
    for (const { pass } of [inTime, late]) await pass(440);
    inTime.resolve("done");
    for (const { pass } of [inTime, late]) await pass(20);
    expect([inTime.waiting.said, late.waiting.said]).toEqual(["done", "too late"]);
    late.reject(new Error("ignored"));
    await late.pass(1);
  });

  it("is waited for longer by as much as the event loop was late", async () => {
    const { clock, waiting, pass } = setUp();
    clock.advanceLate(300);
    await vi.advanceTimersByTimeAsync(300);
    await pass(440);
    expect(waiting.said).toBe("waits");
    await pass(20);
    expect(waiting.said).toBe("too late");
  });

  it("is not given up before an answer that has already arrived was read", async () => {
    const { clock, resolve, waiting } = setUp();
    // The timer is due, and so is the input: the event loop reads it after its timers.
    setTimeout(() => setImmediate(() => resolve("done")), 450);
    clock.advance(5000);
    await vi.advanceTimersByTimeAsync(500);
    expect(waiting.said).toBe("done");
  });
});
