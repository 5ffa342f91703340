import { expect } from "vitest";
import { remainingMax } from "../../src/domain/usage.ts";
import type { ContractCase } from "./contract-case.ts";
import { refillRule } from "./sample-keys.ts";
import { charge, created, settled } from "./usage-cases.ts";

const noon = "2026-01-15T12:00:00.000Z";

export const refillCases: readonly ContractCase[] = [
  {
    name: "a counter begins by the clock that refills it, even if its creator's clock is wrong",
    async run(store, clock) {
      clock.stepTo(noon);
      const dayMs = 86_400_000;
      const refill = refillRule({ carryOver: true });
      const wrongBy = (days: number) => ({ remaining: 5, refill, createdAtMs: clock.nowMs() + days * dayMs });
      const behind = await created(store, clock, wrongBy(-40));
      const ahead = await created(store, clock, wrongBy(40));
      expect(await charge(store, behind, 1)).toEqual(settled(1, 4));
      clock.stepTo("2026-01-16T00:00:00.000Z");
      expect(await charge(store, behind, 1)).toEqual(settled(1, 13));
      expect(await charge(store, ahead, 1)).toEqual(settled(1, 14));
    },
  },
  {
    name: "a daily counter is restored at midnight, not a millisecond before, and once",
    async run(store, clock) {
      clock.stepTo(noon);
      const key = await created(store, clock, { remaining: 2, refill: refillRule() });
      expect(await charge(store, key, 2)).toEqual(settled(2, 0));
      clock.stepTo("2026-01-15T23:59:59.999Z");
      expect(await charge(store, key, 1)).toEqual(settled(0, 0));
      clock.stepTo("2026-01-16T00:00:00.000Z");
      expect(await charge(store, key, 4)).toEqual(settled(4, 6));
      expect(await charge(store, key, 7)).toEqual(settled(6, 0));
      clock.stepTo("2026-01-16T23:59:59.999Z");
      expect(await charge(store, key, 1)).toEqual(settled(0, 0));
      clock.stepTo("2026-01-17T00:00:00.000Z");
      expect(await charge(store, key, 1)).toEqual(settled(1, 9));
    },
  },
  {
    name: "a monthly counter is restored on the first of the month, not a millisecond before, and once",
    async run(store, clock) {
      clock.stepTo("2024-01-31T12:00:00.000Z");
      const key = await created(store, clock, { remaining: 0, refill: refillRule({ interval: "monthly" }) });
      clock.stepTo("2024-01-31T23:59:59.999Z");
      expect(await charge(store, key, 1)).toEqual(settled(0, 0));
      clock.stepTo("2024-02-01T00:00:00.000Z");
      expect(await charge(store, key, 12)).toEqual(settled(10, 0));
      clock.stepTo("2024-02-29T23:59:59.999Z");
      expect(await charge(store, key, 1)).toEqual(settled(0, 0));
      clock.stepTo("2024-03-01T00:00:00.000Z");
      expect(await charge(store, key, 1)).toEqual(settled(1, 9));
    },
  },
  {
    name: "a restoring refill takes no uses away and lets none pile up",
    async run(store, clock) {
      clock.stepTo(noon);
      const rich = await created(store, clock, { remaining: 50, refill: refillRule() });
      const poor = await created(store, clock, { remaining: 3, refill: refillRule() });
      clock.stepTo("2026-03-15T12:00:00.000Z");
      expect(await charge(store, rich, 1)).toEqual(settled(1, 49));
      expect(await charge(store, poor, 1)).toEqual(settled(1, 9));
    },
  },
  {
    name: "a refill that carries over adds its amount for every boundary that went by, once",
    async run(store, clock) {
      clock.stepTo(noon);
      const daily = await created(store, clock, { remaining: 1, refill: refillRule({ carryOver: true }) });
      const monthly = await created(store, clock, {
        remaining: 1,
        refill: refillRule({ interval: "monthly", carryOver: true }),
      });
      clock.stepTo("2026-03-01T00:00:00.000Z");
      expect(await charge(store, daily, 1)).toEqual(settled(1, 450));
      expect(await charge(store, monthly, 1)).toEqual(settled(1, 20));
      expect(await charge(store, daily, 1)).toEqual(settled(1, 449));
      expect(await charge(store, monthly, 1)).toEqual(settled(1, 19));
    },
  },
  {
    name: "a refill that carries over stops at the bound",
    async run(store, clock) {
      clock.stepTo(noon);
      const refill = refillRule({ amount: remainingMax, carryOver: true });
      const key = await created(store, clock, { remaining: remainingMax, refill });
      clock.stepTo("2027-01-15T12:00:00.000Z");
      expect(await charge(store, key, 1)).toEqual(settled(1, 2_147_483_646));
    },
  },
  {
    name: "a clock that goes back refills no boundary a second time",
    async run(store, clock) {
      clock.stepTo(noon);
      const key = await created(store, clock, { remaining: 0, refill: refillRule({ carryOver: true }) });
      clock.stepTo("2026-01-17T00:00:00.000Z");
      expect(await charge(store, key, 20)).toEqual(settled(20, 0));
      for (const moment of ["2026-01-14T23:00:00.000Z", "2026-01-16T00:00:00.000Z", "2026-01-17T23:59:59.999Z"]) {
        clock.stepTo(moment);
        expect(await charge(store, key, 1), moment).toMatchObject(settled(0, 0));
      }
      clock.stepTo("2026-01-18T00:00:00.000Z");
      expect(await charge(store, key, 1)).toEqual(settled(1, 9));
    },
  },
  {
    name: "a counter that was refilled by a clock that was ahead says by how much, until the boundary is there",
    async run(store, clock) {
      for (const interval of ["daily", "monthly"] as const) {
        clock.stepTo("2026-01-31T12:00:00.000Z");
        const key = await created(store, clock, { remaining: 5, refill: refillRule({ interval }) });
        const plain = await created(store, clock, { remaining: 5 });
        clock.stepTo("2026-02-01T00:00:00.001Z");
        expect(await charge(store, key, 1)).toEqual(settled(1, 9));
        clock.stepTo("2026-01-31T12:00:00.000Z");
        expect(await charge(store, key, 1)).toEqual({ ...settled(1, 8), refilledAheadMs: 43_200_000 });
        expect(await charge(store, plain, 1)).toEqual(settled(1, 4));
        clock.stepTo("2026-01-31T23:59:59.999Z");
        expect(await charge(store, key, 9)).toEqual({ ...settled(8, 0), refilledAheadMs: 1 });
        clock.stepTo("2026-02-01T00:00:00.000Z");
        expect(await charge(store, key, 1)).toEqual(settled(0, 0));
      }
    },
  },
  {
    name: "calls at once just after midnight share one refill",
    async run(store, clock) {
      clock.stepTo(noon);
      const key = await created(store, clock, { remaining: 0, refill: refillRule({ carryOver: true }) });
      clock.stepTo("2026-01-16T00:00:00.000Z");
      const answers = await Promise.all(Array.from({ length: 30 }, () => charge(store, key, 1)));
      expect(answers.filter((answer) => answer.outcome === "settled" && answer.granted === 1)).toHaveLength(10);
    },
  },
  {
    name: "a refill is kept even when a look-up comes between it and the next use",
    async run(store, clock) {
      clock.stepTo(noon);
      const key = await created(store, clock, { remaining: 0, refill: refillRule({ carryOver: true }) });
      clock.stepTo("2026-01-18T12:00:00.000Z");
      expect(await charge(store, key, 1)).toEqual(settled(1, 29));
      expect(await store.keys.findByDigest(key.secretDigest)).toMatchObject({ counter: { remaining: 29 } });
      expect(await charge(store, key, 1)).toEqual(settled(1, 28));
    },
  },
];
