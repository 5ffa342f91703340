import { describe, expect, it } from "vitest";
import { Unavailable } from "../../src/domain/unavailable.ts";
import { PendingCalls } from "../../src/link/pending-calls.ts";

function setUp(callsMax = 10) {
  const sent: number[] = [];
  const calls = new PendingCalls(callsMax, "too many");
  const call = (onOverdue?: () => void) => calls.open<string>((number) => sent.push(number), onOverdue);
  return { calls, sent, call };
}

describe("calls without an answer", () => {
  it("get each their own answer or error, once, under numbers that are not 0", async () => {
    const { calls, sent, call } = setUp();
    const answers = Promise.allSettled([call(), call(), call()]);
    const [a = 0, b = 0, c = 0] = sent;
    expect(sent).not.toContain(0);
    calls.resolve(c, "third");
    calls.resolve(c, "again");
    calls.reject(a, new Error("first"));
    calls.resolve(99, "nobody's");
    calls.resolve(b, "second");
    expect(await answers).toMatchObject([{ reason: { message: "first" } }, { value: "second" }, { value: "third" }]);
    expect(calls.size).toBe(0);
  });

  it("are bounded: one more is unavailable and not sent", async () => {
    const { sent, call, calls } = setUp(2);
    const waiting = [call(), call()];
    await expect(call()).rejects.toEqual(new Unavailable("too many", { nothingDone: true }));
    expect(sent.length).toBe(2);
    calls.rejectAll(new Unavailable("gone"));
    for (const each of waiting) await expect(each).rejects.toThrow("gone");
  });

  it("are told once that they are overdue, and are answered all the same", async () => {
    const { calls, sent, call } = setUp();
    let overdue = 0;
    const late = call(() => overdue++);
    calls.markOverdue();
    calls.markOverdue();
    expect(overdue).toBe(1);
    calls.resolve(sent[0] as number, "late");
    expect(await late).toBe("late");
  });
});
