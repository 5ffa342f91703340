import { expect } from "vitest";
import { setRateLimit } from "../support/manage.ts";
import { ones } from "../support/ones.ts";
import type { TestClock } from "../support/test-clock.ts";
import type { ContractCase } from "./contract-case.ts";
import { ask, createdStrict, strict, windowMs } from "./permit-asks.ts";

const hourMs = 3_600_000;

function setBy(clock: TestClock, ms: number): void {
  clock.stepTo(clock.nowMs() + ms);
}

/** What the permit ledger promises when its clock is set. */
export const permitClockCases: readonly ContractCase[] = [
  {
    name: "a clock that is set back and right again within the duration grants no window twice",
    async run(store, clock) {
      const key = await createdStrict(store, clock, 10);
      const { endsAtMs } = await ask(store, key, { waiting: ones(10) });
      clock.advance(5000);
      setBy(clock, -hourMs);
      const clampedMs = clock.nowMs() + windowMs;
      const behind = { gen: 1, granted: 0, left: 0, durationMs: windowMs, endsAtMs: clampedMs, clockBehind: true };
      expect(await ask(store, key, { waiting: ones(1) })).toMatchObject({ ...behind, endsInMs: windowMs });
      clock.advance(3000);
      expect(await ask(store, key, { waiting: ones(1) })).toMatchObject({ ...behind, endsInMs: windowMs - 3000 });
      setBy(clock, hourMs);
      const right = { gen: 1, granted: 0, endsAtMs, clockBehind: false };
      expect(await ask(store, key, { waiting: ones(1) })).toMatchObject({ ...right, endsInMs: windowMs - 8000 });
      clock.advance(windowMs - 8001);
      expect(await ask(store, key, { waiting: ones(1) })).toMatchObject({ ...right, endsInMs: 1 });
      clock.advance(1);
      expect(await ask(store, key, { waiting: ones(10) })).toMatchObject({ gen: 2, granted: 10, endsInMs: windowMs });
    },
  },
  {
    name: "a clock that is set back permanently keeps a window open for at most its duration after that is noticed",
    async run(store, clock) {
      const key = await createdStrict(store, clock, 10);
      await ask(store, key, { waiting: ones(10) });
      setBy(clock, -hourMs);
      await ask(store, key, { waiting: ones(1) });
      clock.advance(windowMs - 1);
      expect(await ask(store, key, { waiting: ones(1) })).toMatchObject({ gen: 1, granted: 0, endsInMs: 1 });
      clock.advance(1);
      const next = { gen: 2, granted: 10, left: 0, endsInMs: windowMs, endsAtMs: clock.nowMs() + windowMs };
      expect(await ask(store, key, { waiting: ones(11) })).toMatchObject({ ...next, clockBehind: false });
    },
  },
  {
    name: "a clock that is set back further keeps a window open for its duration after that step",
    async run(store, clock) {
      const key = await createdStrict(store, clock, 10);
      await ask(store, key, { waiting: ones(10) });
      for (let i = 0; i < 3; i++) {
        setBy(clock, -hourMs);
        expect(await ask(store, key, { waiting: ones(1) })).toMatchObject({ gen: 1, granted: 0, endsInMs: windowMs });
        clock.advance(1000);
      }
      clock.advance(windowMs - 1001);
      expect(await ask(store, key, { waiting: ones(1) })).toMatchObject({ gen: 1, granted: 0, endsInMs: 1 });
      clock.advance(1);
      expect(await ask(store, key, { waiting: ones(1) })).toMatchObject({ gen: 2, granted: 1 });
    },
  },
  {
    name: "a window's end is judged by the duration it was opened with, even if the rule has changed",
    async run(store, clock) {
      for (const durationMs of [1000, 10 * windowMs]) {
        const key = await createdStrict(store, clock, 10);
        const { endsAtMs } = await ask(store, key, { waiting: ones(10) });
        await setRateLimit(store.management, key.id, strict(10, durationMs));
        const open = { gen: 1, granted: 0, durationMs: windowMs };
        const right = { ...open, endsAtMs, clockBehind: false };
        expect(await ask(store, key, { waiting: ones(1) })).toMatchObject({ ...right, endsInMs: windowMs });
        setBy(clock, -hourMs);
        expect(await ask(store, key, { waiting: ones(1) })).toMatchObject({
          ...open,
          endsInMs: windowMs,
          clockBehind: true,
        });
        clock.advance(2000);
        expect(await ask(store, key, { waiting: ones(1) })).toMatchObject({ ...open, endsInMs: windowMs - 2000 });
        setBy(clock, hourMs);
        expect(await ask(store, key, { waiting: ones(1) })).toMatchObject({ ...right, endsInMs: windowMs - 2000 });
        clock.advance(windowMs - 2000);
        const next = { gen: 2, granted: 1, endsInMs: durationMs, durationMs };
        expect(await ask(store, key, { waiting: ones(1) })).toMatchObject(next);
      }
    },
  },
  {
    name: "while the clock is behind, a window grants permits to waiting requests only, none in advance",
    async run(store, clock) {
      const key = await createdStrict(store, clock, 100);
      const greedy = { waiting: ones(2), inAdvance: 8, gen: 1 };
      expect(await ask(store, key, greedy)).toMatchObject({ granted: 10, contended: false });
      setBy(clock, -hourMs);
      const behind = { clockBehind: true, contended: true };
      expect(await ask(store, key, greedy)).toMatchObject({ ...behind, granted: 2, left: 88 });
      expect(await ask(store, key, { inAdvance: 10, gen: 1 })).toMatchObject({ ...behind, granted: 0, left: 88 });
      const back = await ask(store, key, { gen: 1, returned: 5, spent: 3 });
      expect(back).toMatchObject({ ...behind, left: 93, outstanding: 4 });
      setBy(clock, hourMs);
      const right = { clockBehind: false, contended: false };
      expect(await ask(store, key, greedy)).toMatchObject({ ...right, granted: 10, left: 83 });
    },
  },
  {
    name: "a clock that is set forward opens one window more, and none is locked when it is right again",
    async run(store, clock) {
      const key = await createdStrict(store, clock, 10);
      await ask(store, key, { waiting: ones(10) });
      setBy(clock, hourMs);
      expect(await ask(store, key, { waiting: ones(10) })).toMatchObject({ gen: 2, granted: 10, endsInMs: windowMs });
      expect(await ask(store, key, { waiting: ones(1) })).toMatchObject({ gen: 2, granted: 0 });
      setBy(clock, -hourMs);
      expect(await ask(store, key, { waiting: ones(1) })).toMatchObject({ gen: 2, granted: 0, endsInMs: windowMs });
      clock.advance(windowMs);
      expect(await ask(store, key, { waiting: ones(10) })).toMatchObject({ gen: 3, granted: 10, clockBehind: false });
    },
  },
];
