import { describe, expect, it } from "vitest";
import { latestBoundaryMs } from "../../src/domain/refill-calendar.ts";
import { newCounter, refilled, remainingMax, settle, type UsageCounter } from "../../src/domain/usage.ts";
import { allEventKinds, describeYears, firstDifference, type SubjectFactory } from "./simulated-years.ts";
import type { Rule } from "./slow-counter.ts";

const seeds = [1, 2, 3, 4, 5, 6, 7, 8];

describe("ten years of refills, spends, downtime and clock steps", () => {
  it.each(seeds)("come out of the product as of a walk through the calendar (seed %i)", (seed) => {
    expect(firstDifference(seed, product)).toBeUndefined();
  });

  it.each(seeds)("hold every kind of event many times (seed %i)", (seed) => {
    const { counts } = describeYears(seed);
    for (const kind of allEventKinds()) expect(counts.get(kind), kind).toBeGreaterThan(5);
  });

  it("hold, over all seeds, every leap day, new year and last of a month", () => {
    const days = new Set(seeds.flatMap((seed) => [...describeYears(seed).days]));
    for (let month = new Date("2024-01-01T00:00:00Z"); month.getUTCFullYear() < 2033; ) {
      expect(days).toContain(month.toISOString().slice(0, 10));
      month.setUTCMonth(month.getUTCMonth() + 1);
      expect(days).toContain(new Date(month.getTime() - 1).toISOString().slice(0, 10));
    }
  });
});

describe("the same comparison catches a product that", () => {
  const broken: readonly (readonly [string, SubjectFactory])[] = [
    ["refills 24 hours after the last refill", withRefill(after24Hours)],
    ["sets the counter to the amount, taking uses away", withRefill(setToAmount)],
    ["refills again after the clock was set back", withRefill(forgetsWhenSetBack)],
    ["takes a month for 30 days", withRefill(monthOf30Days)],
    ["adds the amount once for several boundaries", withRefill(onceForMany)],
    ["lets the counter grow beyond its bound", withRefill(withoutBound)],
    ["refills a millisecond after midnight", withRefill(aMillisecondLate)],
    ["never refills", withRefill((counter) => counter)],
  ];

  it.each(broken)("%s", (_, create) => {
    const caught = seeds.map((seed) => firstDifference(seed, create)).filter((difference) => difference !== undefined);
    expect(caught).toHaveLength(seeds.length);
  });
});

function product(rule: Rule, remaining: number, createdAt: Date) {
  let counter = newCounter(remaining, rule, createdAt.getTime());
  return {
    spend(wanted: number, now: Date) {
      const settled = settle(counter, { cost: 1, count: wanted }, now.getTime());
      counter = settled.counter;
      return { granted: settled.granted, remaining: counter.remaining };
    },
  };
}

type BrokenRefill = (counter: UsageCounter, nowMs: number) => UsageCounter;

/** The product with another refill: the counter it hands to `settle` is never due for one of settle's own. */
function withRefill(refill: BrokenRefill): SubjectFactory {
  return (rule, remaining, createdAt) => {
    let counter = newCounter(remaining, rule, createdAt.getTime());
    return {
      spend(wanted, now) {
        const due = refill(counter, now.getTime());
        const { granted, counter: spent } = settle(
          { ...due, refill: undefined },
          { cost: 1, count: wanted },
          now.getTime(),
        );
        counter = { ...due, remaining: spent.remaining };
        return { granted, remaining: counter.remaining };
      },
    };
  };
}

function after24Hours(counter: UsageCounter, nowMs: number): UsageCounter {
  const { refill } = counter;
  if (refill === undefined || refill.interval === "monthly") return refilled(counter, nowMs);
  const days = Math.floor((nowMs - refill.refilledThroughMs) / 86_400_000);
  if (days < 1) return counter;
  const due = refilled(counter, refill.refilledThroughMs + days * 86_400_000);
  return { ...due, refill: { ...refill, refilledThroughMs: nowMs } };
}

function setToAmount(counter: UsageCounter, nowMs: number): UsageCounter {
  const due = refilled(counter, nowMs);
  if (due === counter || due.refill === undefined || due.refill.carryOver) return due;
  return { ...due, remaining: due.refill.amount };
}

function forgetsWhenSetBack(counter: UsageCounter, nowMs: number): UsageCounter {
  const { refill, ...due } = refilled(counter, nowMs);
  return { ...due, refill: refill && { ...refill, refilledThroughMs: latestBoundaryMs(refill.interval, nowMs) } };
}

function monthOf30Days(counter: UsageCounter, nowMs: number): UsageCounter {
  const { refill } = counter;
  if (refill === undefined || refill.interval === "daily") return refilled(counter, nowMs);
  const months = Math.floor((nowMs - refill.refilledThroughMs) / (30 * 86_400_000));
  if (months < 1) return counter;
  const { amount, carryOver } = refill;
  const remaining = carryOver
    ? Math.min(remainingMax, counter.remaining + amount * months)
    : Math.max(counter.remaining, amount);
  const refilledThroughMs = refill.refilledThroughMs + months * 30 * 86_400_000;
  return { ...counter, remaining, refill: { ...refill, refilledThroughMs } };
}

function onceForMany(counter: UsageCounter, nowMs: number): UsageCounter {
  const due = refilled(counter, nowMs);
  if (due === counter || !due.refill?.carryOver) return due;
  return { ...due, remaining: Math.min(remainingMax, counter.remaining + due.refill.amount) };
}

function withoutBound(counter: UsageCounter, nowMs: number): UsageCounter {
  const due = refilled(counter, nowMs);
  if (due === counter || due.remaining < remainingMax) return due;
  return { ...due, remaining: counter.remaining + (due.refill?.carryOver ? due.refill.amount : 0) };
}

function aMillisecondLate(counter: UsageCounter, nowMs: number): UsageCounter {
  return refilled(counter, nowMs - 1);
}
