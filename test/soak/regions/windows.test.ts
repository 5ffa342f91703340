import { describe, expect, it } from "vitest";
import { type Answer, longestOutageMs, type Outcome, oddOf } from "./answers.ts";
import { isFull, over, tooClose, unusedPermits, windowsOf, within } from "./windows.ts";

const rules = new Map([["key", { limit: 2, durationMs: 1000 }]]);

function answer(outcome: Outcome, resetMs: number, more: Partial<Answer> = {}): Answer {
  return { edge: "edge1", key: "key", sentMs: 0, answeredMs: 1, outcome, resetMs, ...more };
}

describe("the lab's reading of answers", () => {
  it("finds a window that lets more pass than its limit, over all edges", () => {
    const answers = [answer("admitted", 5000), answer("admitted", 5000), answer("admitted", 5000, { edge: "edge2" })];
    expect(over(windowsOf(answers, rules))).toBe(1);
    expect(over(windowsOf(answers.slice(1), rules))).toBe(0);
  });

  it("finds windows that end less than their duration apart, in whatever order they are told", () => {
    const answers = [answer("admitted", 5999), answer("admitted", 5000), answer("admitted", 7000)];
    expect(tooClose(windowsOf(answers, rules))).toEqual(["key: windows of 1000 ms end 999 ms apart"]);
    expect(tooClose(windowsOf(answers.slice(1), rules))).toEqual([]);
  });

  it("finds permits that nobody got, in windows that refused callers only", () => {
    const short = [answer("admitted", 5000), answer("limited", 5000)];
    const idle = [answer("admitted", 6000)];
    expect(unusedPermits(windowsOf([...short, ...idle], rules))).toBe(1);
    expect(windowsOf(short, rules).filter(isFull)).toEqual([]);
  });

  it("counts only windows that opened and ended within the time span", () => {
    const windows = windowsOf([answer("admitted", 5000), answer("admitted", 6000)], rules);
    expect(within(windows, 4001, 6000).map(({ resetMs }) => resetMs)).toEqual([6000]);
    expect(within(windows, 4000, 5999).map(({ resetMs }) => resetMs)).toEqual([5000]);
  });

  it("takes the longest outage of one key on one edge, not the sum over all, and leaves calm seconds out", () => {
    const failed = (edge: string, sentMs: number) =>
      answer("unavailable", 0, { edge, sentMs, answeredMs: sentMs + 10 });
    expect(longestOutageMs([failed("edge1", 100), failed("edge1", 300), failed("edge2", 900)])).toBe(210);
    expect(longestOutageMs([failed("edge1", 100), failed("edge1", 9000), failed("edge1", 9050)])).toBe(70);
    expect(longestOutageMs([answer("admitted", 5000)])).toBe(0);
  });

  it("counts answers that no caller should see", () => {
    expect(oddOf([answer("odd: NOT_FOUND", 0), answer("odd: NOT_FOUND", 0), answer("unavailable", 0)])).toEqual([
      "2 × odd: NOT_FOUND",
    ]);
  });
});
