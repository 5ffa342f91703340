import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  newCounter,
  type RefillRule,
  refilled,
  remainingMax,
  settle,
  type UsageCounter,
} from "../../src/domain/usage.ts";

const daily: RefillRule = { interval: "daily", amount: 10, carryOver: false };
const monthly: RefillRule = { interval: "monthly", amount: 10, carryOver: false };
const uses = (count: number) => ({ cost: 1, count });
const noon = at("2026-01-15T12:00:00.000Z");

describe("a new counter", () => {
  it("holds what it was given and no refill without a rule", () => {
    const meter = { credited: 7, hour: 0, sinceMs: noon, formerSpent: 0 };
    expect(newCounter(7, undefined, noon)).toEqual({ remaining: 7, refill: undefined, meter });
  });

  it.each([
    [daily, "2026-01-15T23:59:59.999Z", "2026-01-16T00:00:00.000Z"],
    [monthly, "2026-01-31T23:59:59.999Z", "2026-02-01T00:00:00.000Z"],
  ])("created at noon with %j has no refill at %s and its first at %s", (rule, before, boundary) => {
    const counter = newCounter(0, rule, noon);
    expect(refilled(counter, at(before)).remaining).toBe(0);
    expect(refilled(counter, at(boundary)).remaining).toBe(10);
  });

  it("created exactly at a boundary has its first refill at the next", () => {
    const midnight = at("2026-01-15T00:00:00.000Z");
    const counter = newCounter(0, daily, midnight);
    expect(refilled(counter, midnight).remaining).toBe(0);
    expect(refilled(counter, at("2026-01-16T00:00:00.000Z")).remaining).toBe(10);
  });

  it("created one millisecond before a boundary is refilled at it", () => {
    const counter = newCounter(0, daily, at("2026-01-15T23:59:59.999Z"));
    expect(refilled(counter, at("2026-01-16T00:00:00.000Z")).remaining).toBe(10);
  });
});

describe("a refill that restores", () => {
  it.each([
    [0, 10],
    [9, 10],
    [10, 10],
    [11, 11],
    [remainingMax, remainingMax],
  ])("turns %i into %i: it never takes uses away", (remaining, after) => {
    expect(refilled(newCounter(remaining, daily, noon), at("2026-01-16T00:00:00.000Z")).remaining).toBe(after);
  });

  it("comes to the same after a year away as after a day", () => {
    expect(refilled(newCounter(3, daily, noon), at("2027-01-15T12:00:00.000Z")).remaining).toBe(10);
  });
});

describe("a refill that carries over", () => {
  it.each([
    ["2026-01-15T23:59:59.999Z", daily, 3],
    ["2026-01-16T00:00:00.000Z", daily, 13],
    ["2026-01-18T05:00:00.000Z", daily, 33],
    ["2026-01-31T23:59:59.999Z", monthly, 3],
    ["2026-04-01T00:00:00.000Z", monthly, 33],
  ])("adds its amount once for each boundary up to %s", (until, rule, after) => {
    expect(refilled(newCounter(3, { ...rule, carryOver: true }, noon), at(until)).remaining).toBe(after);
  });

  it.each([
    [remainingMax - 10, 10, 1],
    [remainingMax - 9, 10, 1],
    [remainingMax, 1, 1],
    [0, remainingMax, 2],
    [remainingMax, remainingMax, 20_000],
  ])("stops at 2147483647: %i and %i more, %i times", (remaining, amount, days) => {
    const counter = newCounter(remaining, { interval: "daily", amount, carryOver: true }, noon);
    expect(refilled(counter, noon + days * 86_400_000).remaining).toBe(2_147_483_647);
  });
});

describe("the clock", () => {
  it.each([true, false])("set back and let run again refills no boundary twice (carryOver %j)", (carryOver) => {
    const rule = { ...daily, carryOver };
    const emptied = settle(newCounter(0, rule, noon), uses(10), at("2026-01-16T00:00:00.000Z"));
    expect(emptied.granted).toBe(10);
    const moments = [
      "2026-01-14T00:00:00.000Z",
      "2026-01-15T23:59:59.999Z",
      "2026-01-16T00:00:00.000Z",
      "2026-01-16T23:59:59.999Z",
    ];
    let { counter } = emptied;
    for (const moment of moments) {
      const settled = settle(counter, uses(1), at(moment));
      expect(settled.granted, moment).toBe(0);
      counter = settled.counter;
    }
    expect(settle(counter, uses(1), at("2026-01-17T00:00:00.000Z")).granted).toBe(1);
  });

  it("set forward by mistake refills early, and not again when the real boundary comes", () => {
    const early = settle(newCounter(0, monthly, noon), uses(10), at("2026-02-01T00:00:00.000Z"));
    expect(early.granted).toBe(10);
    expect(settle(early.counter, uses(1), at("2026-01-31T23:59:59.999Z")).granted).toBe(0);
    expect(settle(early.counter, uses(1), at("2026-02-10T00:00:00.000Z")).granted).toBe(0);
    expect(settle(early.counter, uses(1), at("2026-03-01T00:00:00.000Z")).granted).toBe(1);
  });
});

describe("settle", () => {
  it.each([
    [5, 1, 1, 4],
    [5, 5, 5, 0],
    [5, 6, 5, 0],
    [0, 1, 0, 0],
    [0, 1000, 0, 0],
    [remainingMax, 1, 1, remainingMax - 1],
    [5, 0, 0, 5],
  ])("with %i left and %i wanted grants %i and leaves %i", (remaining, wanted, granted, after) => {
    const settled = settle(newCounter(remaining, undefined, noon), uses(wanted), noon);
    expect([settled.granted, settled.counter.remaining]).toEqual([granted, after]);
  });

  it("refills before it grants", () => {
    expect(settle(newCounter(0, daily, noon), uses(4), at("2026-01-16T00:00:00.000Z"))).toMatchObject({
      granted: 4,
      counter: { remaining: 6 },
    });
  });

  it("hands back the very same counter when nothing changed, so that nothing need be written", () => {
    const empty = newCounter(0, daily, noon);
    expect(settle(empty, uses(3), noon).counter).toBe(empty);
  });

  it("remembers a refill even when nothing was wanted", () => {
    const { counter } = settle(
      newCounter(0, { ...daily, carryOver: true }, noon),
      uses(0),
      at("2026-01-16T00:00:00.000Z"),
    );
    expect(counter.remaining).toBe(10);
    expect(settle(counter, uses(0), at("2026-01-16T12:00:00.000Z")).counter.remaining).toBe(10);
  });

  it("comes to the same for uses asked for one by one as for all at once", () => {
    fc.assert(
      fc.property(fc.nat(30), fc.nat(40), fc.boolean(), (remaining, wanted, carryOver) => {
        const counter = newCounter(remaining, { ...daily, carryOver }, noon);
        const later = noon + 86_400_000;
        let one: { granted: number; counter: UsageCounter } = { granted: 0, counter };
        let granted = 0;
        for (let i = 0; i < wanted; i++) {
          one = settle(one.counter, uses(1), later);
          granted += one.granted;
        }
        const all = settle(counter, uses(wanted), later);
        expect(granted).toBe(all.granted);
        if (wanted > 0) expect(one.counter).toEqual(all.counter);
      }),
    );
  });
});

function at(iso: string): number {
  return Date.parse(iso);
}
