import { describe, expect, it } from "vitest";
import { boundariesIn, bucketsOf, type Granularity, runsOutAtMs } from "../../src/domain/spending.ts";
import { newCounter, type RefillRule, settle } from "../../src/domain/usage.ts";

const at = Date.parse;
const hour = 3_600_000;

describe("the boundaries of a range", () => {
  it.each<[Granularity, string, string, string[]]>([
    ["hour", "2026-03-29T00:00Z", "2026-03-29T03:00Z", ["00:00", "01:00", "02:00", "03:00"]],
    ["day", "2026-02-27T00:00Z", "2026-03-01T00:00Z", ["02-27", "02-28", "03-01"]],
    ["month", "2025-12-01T00:00Z", "2026-02-01T00:00Z", ["2025-12", "2026-01", "2026-02"]],
    ["total", "2026-02-27T05:00Z", "2026-03-01T07:00Z", ["02-27T05", "03-01T07"]],
  ])("by the %s from %s to %s are %j", (granularity, start, end, expected) => {
    const found = boundariesIn({ startMs: at(start), endMs: at(end), granularity }) as readonly number[];
    expect(found.map((ms) => new Date(ms).toISOString())).toEqual(
      expected.map((part) => expect.stringContaining(part)),
    );
    expect([found[0], found.at(-1)]).toEqual([at(start), at(end)]);
  });

  it.each<[Granularity, string, string, string]>([
    ["hour", "2026-02-27T00:30Z", "2026-02-28T00:00Z", "start"],
    ["total", "2026-02-27T00:00Z", "2026-02-28T00:00:00.001Z", "end"],
    ["day", "2026-02-27T01:00Z", "2026-02-28T00:00Z", "start"],
    ["month", "2026-02-01T00:00Z", "2026-02-28T00:00Z", "end"],
    ["hour", "2026-01-01T00:00Z", "2026-02-01T01:00Z", "end"],
    ["day", "2024-01-01T00:00Z", "2026-01-02T00:00Z", "end"],
    ["month", "2020-01-01T00:00Z", "2025-02-01T00:00Z", "end"],
  ])("by the %s from %s to %s are refused for the %s", (granularity, start, end, field) => {
    expect(boundariesIn({ startMs: at(start), endMs: at(end), granularity })).toMatchObject({ field });
  });

  it.each<[Granularity, string, string, number]>([
    ["hour", "2026-01-01T00:00Z", "2026-02-01T00:00Z", 745],
    ["day", "2024-01-01T00:00Z", "2026-01-01T00:00Z", 732],
    ["month", "2020-01-01T00:00Z", "2025-01-01T00:00Z", 61],
  ])("by the %s can be as many as from %s to %s", (granularity, start, end, count) => {
    expect(boundariesIn({ startMs: at(start), endMs: at(end), granularity })).toHaveLength(count);
  });
});

describe("buckets", () => {
  it("hold what was spent between their boundaries; those that have not begun are left out", () => {
    const boundaries = [0, hour, 2 * hour, 3 * hour];
    expect(bucketsOf(boundaries, [5, 7, 7, 7], 2 * hour - 1).map(({ spent, isRunning }) => [spent, isRunning])).toEqual(
      [
        [2, false],
        [0, true],
      ],
    );
  });

  it("run until uses that were under way at their end are charged", () => {
    const running = (nowMs: number) => bucketsOf([0, hour], [0, 1], nowMs).map(({ isRunning }) => isRunning);
    expect([hour - 1, hour, hour + 9_999, hour + 10_000].map(running)).toEqual([[true], [true], [true], [false]]);
  });
});

describe("a counter runs out", () => {
  const nowMs = at("2026-01-15T12:00:00Z");
  const sinceMs = nowMs - 24 * hour;
  const counter = (remaining: number, rule?: RefillRule, madeMs = 0) => {
    const made = newCounter(remaining, rule, madeMs);
    return settle(made, { cost: 1, count: 0 }, nowMs).counter;
  };
  const monthly = { interval: "monthly", amount: 1, carryOver: false } as const;

  it("at the pace of its recent uses", () => {
    expect(runsOutAtMs(counter(48), { spent: 24, sinceMs }, nowMs)).toBe(nowMs + 48 * hour);
    expect(runsOutAtMs(counter(0), { spent: 24, sinceMs }, nowMs)).toBe(nowMs);
  });

  it("never, if that were after the year 9999, which no date can be", () => {
    expect(runsOutAtMs(counter(2_147_483_647), { spent: 1, sinceMs }, nowMs)).toBeUndefined();
    expect(runsOutAtMs(counter(2_147_483_647), { spent: 1000, sinceMs }, nowMs)).toBeDefined();
  });

  it("never, if nothing was spent", () => {
    expect(runsOutAtMs(counter(48), { spent: 0, sinceMs }, nowMs)).toBeUndefined();
  });

  it("not where a refill comes first", () => {
    const refilled = counter(24 * 20, monthly, at("2026-01-02T00:00:00Z"));
    expect(runsOutAtMs(refilled, { spent: 24, sinceMs }, nowMs)).toBeUndefined();
    expect(runsOutAtMs(refilled, { spent: 24 * 24, sinceMs }, nowMs)).toBeDefined();
  });

  it("at the pace of the hour since it was made, if it is new", () => {
    const made = counter(48, undefined, nowMs - hour / 2);
    expect(runsOutAtMs(made, { spent: 24, sinceMs }, nowMs)).toBe(nowMs + 2 * hour);
  });
});
