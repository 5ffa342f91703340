import { expect } from "vitest";
import { counterOfOwner } from "../../src/domain/subject.ts";
import { hourAt, hourMs, ownSpentOf, remainingMax } from "../../src/domain/usage.ts";
import type { SpendingQuery, SpendingReadings } from "../../src/store/queries.ts";
import type { Store } from "../../src/store/store.ts";
import {
  createOwner,
  deleteKey,
  deleteOwner,
  testEvent,
  updateOwner,
  updateOwnerRemaining,
  updateRemaining,
} from "../support/manage.ts";
import type { TestClock } from "../support/test-clock.ts";
import type { ContractCase } from "./contract-case.ts";
import { readOwner, sampleOwner } from "./owner-cases.ts";
import { refillRule } from "./sample-keys.ts";
import { settle } from "./settle.ts";
import { charge, created } from "./usage-cases.ts";

export const noon = "2026-01-15T12:10:00.000Z";
export const noonHour = hourAt(Date.parse(noon));

type Asked = Partial<Pick<SpendingQuery, "of" | "hours" | "apiIds">>;

export async function readOne(store: Store, id: string, asked: Asked = {}): Promise<SpendingReadings | undefined> {
  const { counters } = await store.management.read({ kind: "spending", of: "key", ids: [id], hours: [], ...asked });
  return counters[0];
}

/** What was spent before each of these hours, counted from that of noon, and in all. */
export async function spentBefore(
  store: Store,
  id: string,
  hours: readonly number[],
  asked: Asked = {},
): Promise<number[]> {
  const found = await readOne(store, id, { ...asked, hours: hours.map((hour) => noonHour + hour) });
  return [...(found?.spentBefore ?? []), found?.spent ?? -1];
}

const monthly = refillRule({ interval: "monthly" });
export const ofOwner = { of: "owner" } as const;
export const useOwner = (store: Store, ownerId: string, count: number) =>
  charge(store, { id: counterOfOwner(ownerId) }, count);
export const step = (clock: TestClock, hours: number) => clock.stepTo(clock.nowMs() + hours * hourMs);

/** What is read of spending: exactly what was taken from the counter, hour by hour, whatever else became of the counter. */
export const spendingCases: readonly ContractCase[] = [
  {
    name: "what was spent before an hour is what was granted before it, also where nothing was spent for hours",
    async run(store, clock) {
      clock.stepTo(noon);
      const key = await created(store, clock, { remaining: 100 });
      await charge(store, key, 3);
      await charge(store, key, 4);
      step(clock, 1);
      await charge(store, key, 5);
      step(clock, 4);
      await settle(store, [{ subject: key.id, cost: 6, count: 2 }]);
      const spent = [0, 0, 7, 12, 12, 12, 24, 24, 24];
      expect(await spentBefore(store, key.id, [-30, 0, 1, 2, 4, 5, 6, 99])).toEqual(spent);
      step(clock, 20);
      expect(await spentBefore(store, key.id, [-30, 0, 1, 2, 4, 5, 6, 99])).toEqual(spent);
      expect(await readOne(store, key.id)).toMatchObject({ counter: { remaining: 76, meter: { credited: 100 } } });
    },
  },
  {
    name: "a refused use is no spending, and makes no reading",
    async run(store, clock) {
      clock.stepTo(noon);
      const key = await created(store, clock, { remaining: 2 });
      await charge(store, key, 5);
      step(clock, 1);
      await charge(store, key, 5);
      expect(await spentBefore(store, key.id, [0, 1, 2])).toEqual([0, 2, 2, 2]);
    },
  },
  {
    name: "a charge on two counters is spent by both",
    async run(store, clock) {
      clock.stepTo(noon);
      const key = await created(store, clock, { remaining: 10 });
      await createOwner(store.management, sampleOwner("one", { remaining: 5 }));
      const both = { subject: key.id, shared: counterOfOwner("one"), cost: 2, count: 3 };
      await settle(store, [both]);
      step(clock, 1);
      await settle(store, [{ ...both, cost: 1 }]);
      expect(await spentBefore(store, key.id, [0, 1, 2])).toEqual([0, 4, 5, 5]);
      expect(await spentBefore(store, "one", [0, 1, 2], ofOwner)).toEqual([0, 4, 5, 5]);
    },
  },
  {
    name: "refills are no spending: those that restore, that carry over, and that are clamped",
    async run(store, clock) {
      clock.stepTo(noon);
      const restored = await created(store, clock, { remaining: 5, refill: refillRule() });
      const full = await created(store, clock, { remaining: 50, refill: refillRule() });
      const carried = await created(store, clock, { remaining: 5, refill: refillRule({ carryOver: true }) });
      const clamped = await created(store, clock, {
        remaining: remainingMax - 3,
        refill: refillRule({ carryOver: true }),
      });
      for (const key of [restored, full, carried, clamped]) {
        await charge(store, key, 1);
        step(clock, 0);
      }
      step(clock, 3 * 24);
      for (const key of [restored, full, carried, clamped]) {
        await charge(store, key, 2);
        expect(await spentBefore(store, key.id, [1, 72, 73])).toEqual([1, 1, 3, 3]);
      }
      expect(await readOne(store, clamped.id)).toMatchObject({ counter: { remaining: remainingMax - 2 } });
    },
  },
  {
    name: "changes of the balance and of the refill rule are no spending",
    async run(store, clock) {
      const { management } = store;
      clock.stepTo(noon);
      const key = await created(store, clock, { remaining: 50, refill: refillRule({ carryOver: true }) });
      await charge(store, key, 1);
      for (const [op, value] of [
        ["set", 7],
        ["increment", 100],
        ["decrement", 90],
        ["set", 0],
        ["set", 40],
      ] as const) {
        await updateRemaining(management, key.id, op, value);
        expect(await spentBefore(store, key.id, [0, 1])).toEqual([0, 1, 1]);
      }
      step(clock, 24);
      // With a refill that is due.
      await updateRemaining(management, key.id, "increment", 1);
      step(clock, 24);
      await management.change({ kind: "updateKey", id: key.id, changes: { refill: monthly }, event: testEvent() });
      await charge(store, key, 2);
      expect(await spentBefore(store, key.id, [1, 48, 49])).toEqual([1, 1, 3, 3]);
      expect(await readOne(store, key.id)).toMatchObject({ counter: { remaining: 59 } });
      await createOwner(management, sampleOwner("one", { remaining: 5, refill: refillRule() }));
      await useOwner(store, "one", 2);
      await updateOwnerRemaining(management, "one", "set", 1);
      step(clock, 24);
      await updateOwner(management, "one", { refill: null });
      await useOwner(store, "one", 1);
      expect(await spentBefore(store, "one", [48, 72, 73], ofOwner)).toEqual([0, 2, 3, 3]);
    },
  },
  {
    name: "what a counter has spent is known when it was taken away, and when its key or owner was deleted",
    async run(store, clock) {
      const { management } = store;
      clock.stepTo(noon);
      const taken = await created(store, clock, { remaining: 9 });
      const deleted = await created(store, clock, { remaining: 9 });
      const unused = await created(store, clock, { remaining: 9 });
      await createOwner(management, sampleOwner("one", { remaining: 9 }));
      await charge(store, taken, 1);
      await charge(store, deleted, 2);
      await useOwner(store, "one", 3);
      step(clock, 2);
      await charge(store, deleted, 1);
      await updateRemaining(management, taken.id, "set", undefined);
      await deleteKey(management, deleted.id);
      await deleteKey(management, unused.id);
      await deleteOwner(management, "one");
      step(clock, 5);
      expect(await spentBefore(store, taken.id, [0, 1, 2, 3, 9])).toEqual([0, 1, 1, 1, 1, 1]);
      expect(await spentBefore(store, deleted.id, [0, 1, 2, 3, 9])).toEqual([0, 2, 2, 3, 3, 3]);
      expect(await spentBefore(store, unused.id, [0, 1])).toEqual([0, 0, 0]);
      expect(await spentBefore(store, "one", [0, 1, 2, 9], ofOwner)).toEqual([0, 3, 3, 3, 3]);
      expect(await readOne(store, deleted.id)).toMatchObject({ counter: undefined });
    },
  },
  {
    name: "a counter that is made again goes on from what was spent before",
    async run(store, clock) {
      const { management } = store;
      clock.stepTo(noon);
      const key = await created(store, clock, { remaining: 9 });
      await charge(store, key, 4);
      await updateRemaining(management, key.id, "set", undefined);
      step(clock, 5);
      await updateRemaining(management, key.id, "set", 6);
      await charge(store, key, 1);
      step(clock, 1);
      await charge(store, key, 2);
      expect(await spentBefore(store, key.id, [0, 1, 5, 6, 7])).toEqual([0, 4, 4, 5, 7, 7]);
      expect(await readOne(store, key.id)).toMatchObject({ counter: { remaining: 3 } });
    },
  },
  {
    name: "a counter that is taken away and given again within one hour spends on in that hour",
    async run(store, clock) {
      const { management } = store;
      clock.stepTo(noon);
      const [used, unused] = [
        await created(store, clock, { remaining: 9 }),
        await created(store, clock, { remaining: 9 }),
      ];
      await charge(store, used, 1);
      await charge(store, unused, 1);
      step(clock, 2);
      // With a reading of this hour, and without.
      await charge(store, used, 2);
      for (const key of [used, unused]) {
        await updateRemaining(management, key.id, "set", undefined);
        await updateRemaining(management, key.id, "set", 9);
        await charge(store, key, 4);
      }
      expect(await spentBefore(store, used.id, [2, 3, 4])).toEqual([1, 7, 7, 7]);
      expect(await spentBefore(store, unused.id, [2, 3, 4])).toEqual([1, 5, 5, 5]);
      step(clock, 1);
      for (const key of [used, unused]) await charge(store, key, 1);
      expect(await spentBefore(store, used.id, [2, 3, 4])).toEqual([1, 7, 8, 8]);
      expect(await spentBefore(store, unused.id, [2, 3, 4])).toEqual([1, 5, 6, 6]);
    },
  },
  {
    name: "what an owner shows as spent is its own, not that of who had the same id before",
    async run(store, clock) {
      const { management } = store;
      clock.stepTo(noon);
      const make = () => createOwner(management, sampleOwner("one", { remaining: 9 }));
      const shown = async () => {
        const counter = (await readOwner(store, "one"))?.counter;
        return counter && ownSpentOf(counter);
      };
      await make();
      await useOwner(store, "one", 3);
      expect(await shown()).toBe(3);
      // The same owner goes on.
      await updateOwnerRemaining(management, "one", "set", undefined);
      await updateOwnerRemaining(management, "one", "set", 9);
      await useOwner(store, "one", 1);
      expect(await shown()).toBe(4);
      await deleteOwner(management, "one");
      expect(await make()).toMatchObject({ answer: { counter: { meter: { formerSpent: 4 } } } });
      expect(await shown()).toBe(0);
      await useOwner(store, "one", 2);
      step(clock, 1);
      await deleteOwner(management, "one");
      await createOwner(management, sampleOwner("one"));
      await updateOwnerRemaining(management, "one", "set", 9);
      await useOwner(store, "one", 5);
      expect(await shown()).toBe(5);
      expect(await spentBefore(store, "one", [0, 1, 2], ofOwner)).toEqual([0, 6, 11, 11]);
    },
  },
  {
    name: "an owner that is deleted, made, used and deleted again within one hour has spent everything in that hour",
    async run(store, clock) {
      const { management } = store;
      clock.stepTo(noon);
      const make = () => createOwner(management, sampleOwner("one", { remaining: 9 }));
      await make();
      await useOwner(store, "one", 1);
      step(clock, 1);
      for (const count of [2, 3, 4]) {
        await useOwner(store, "one", count);
        await deleteOwner(management, "one");
        await make();
      }
      await useOwner(store, "one", 5);
      await deleteOwner(management, "one");
      expect(await spentBefore(store, "one", [0, 1, 2, 3], ofOwner)).toEqual([0, 1, 15, 15, 15]);
      step(clock, 1);
      await make();
      await useOwner(store, "one", 6);
      expect(await spentBefore(store, "one", [0, 1, 2, 3], ofOwner)).toEqual([0, 1, 15, 21, 21]);
    },
  },
  {
    name: "a clock that goes back moves no spending into hours that were read before, and loses none",
    async run(store, clock) {
      clock.stepTo(noon);
      const key = await created(store, clock, { remaining: 100 });
      await charge(store, key, 1);
      step(clock, 3);
      await charge(store, key, 2);
      step(clock, -2);
      await charge(store, key, 4);
      // The hour that was reached is not there yet: it counts when it is.
      expect((await spentBefore(store, key.id, [0, 99])).slice(0, 1)).toEqual([0]);
      step(clock, 2);
      expect(await spentBefore(store, key.id, [0, 1, 2, 3, 4])).toEqual([0, 1, 1, 1, 7, 7]);
      step(clock, 5);
      await charge(store, key, 8);
      expect(await spentBefore(store, key.id, [3, 4, 8, 9])).toEqual([1, 7, 7, 15, 15]);
      step(clock, -5);
      await deleteKey(store.management, key.id);
      step(clock, 9);
      expect(await spentBefore(store, key.id, [3, 4, 12])).toEqual([1, 7, 15, 15]);
    },
  },
];
