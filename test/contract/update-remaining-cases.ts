import { expect } from "vitest";
import type { NewKey } from "../../src/domain/key.ts";
import { remainingMax } from "../../src/domain/usage.ts";
import type { UpdateRemaining } from "../../src/store/commands.ts";
import type { ConflictReason, Outcome } from "../../src/store/management.ts";
import { expectExplained, stepOfCharge, stepOfUpdate } from "../support/balance-steps.ts";
import { deleteKey, updateRemaining } from "../support/manage.ts";
import type { ContractCase } from "./contract-case.ts";
import { refillRule } from "./sample-keys.ts";
import { charge, created, settled } from "./usage-cases.ts";

const noon = "2026-01-15T12:00:00.000Z";
const nextDay = "2026-01-16T00:00:00.000Z";

function updated(key: NewKey, remaining: number | undefined, version: number): Outcome<"updateRemaining"> {
  return { outcome: "done", changed: [{ keyId: key.id, digests: [key.secretDigest] }], answer: { remaining, version } };
}

function refused(reason: ConflictReason): Outcome<"updateRemaining"> {
  return { outcome: "conflict", reason };
}

export const updateRemainingCases: readonly ContractCase[] = [
  {
    name: "a counter that is set counts on from there: 100, a use, set to 50, a use, 49",
    async run(store, clock) {
      const key = await created(store, clock, { remaining: 100 });
      expect(await charge(store, key, 1)).toEqual(settled(1, 99));
      expect(await updateRemaining(store.management, key.id, "set", 50)).toEqual(updated(key, 50, 2));
      expect(await charge(store, key, 1)).toEqual(settled(1, 49));
      expect(await store.keys.findByDigest(key.secretDigest)).toMatchObject({ counter: { remaining: 49 } });
    },
  },
  {
    name: "a counter is incremented and decremented from where it is, up to its bounds, and each change counts a version",
    async run({ management, ...store }, clock) {
      const key = await created({ management, ...store }, clock, { remaining: 5 });
      await charge({ management, ...store }, key, 2);
      expect(await updateRemaining(management, key.id, "increment", 7)).toEqual(updated(key, 10, 2));
      expect(await updateRemaining(management, key.id, "decrement", 4)).toEqual(updated(key, 6, 3));
      expect(await updateRemaining(management, key.id, "decrement", 6)).toEqual(updated(key, 0, 4));
      expect(await updateRemaining(management, key.id, "increment", remainingMax)).toEqual(
        updated(key, remainingMax, 5),
      );
      expect(await updateRemaining(management, key.id, "set", 0)).toEqual(updated(key, 0, 6));
      expect(await updateRemaining(management, key.id, "increment", 0)).toEqual(updated(key, 0, 7));
      expect(await charge({ management, ...store }, key, 1)).toEqual(settled(0, 0));
    },
  },
  {
    name: "what would take a counter below 0 or above its bound is refused, and nothing changes",
    async run(store, clock) {
      const { management } = store;
      const key = await created(store, clock, { remaining: 5 });
      const full = await created(store, clock, { remaining: remainingMax });
      const { position } = await store.changes.read(undefined);
      expect(await updateRemaining(management, key.id, "decrement", 6)).toEqual(refused("belowZero"));
      expect(await updateRemaining(management, key.id, "decrement", remainingMax)).toEqual(refused("belowZero"));
      expect(await updateRemaining(management, key.id, "increment", remainingMax)).toEqual(refused("aboveMax"));
      expect(await updateRemaining(management, full.id, "increment", 1)).toEqual(refused("aboveMax"));
      expect((await store.changes.read(position)).changed).toEqual([]);
      expect(await charge(store, key, 1)).toEqual(settled(1, 4));
      expect(await updateRemaining(management, key.id, "decrement", 4)).toEqual(updated(key, 0, 2));
    },
  },
  {
    name: "only setting it gives a key a counter, and setting it to nothing takes it away with its refill rule",
    async run(store, clock) {
      const { management } = store;
      clock.stepTo(noon);
      const key = await created(store, clock);
      const { position } = await store.changes.read(undefined);
      for (const op of ["increment", "decrement"] as const)
        expect(await updateRemaining(management, key.id, op, 1)).toEqual(refused("noCounter"));
      expect((await store.changes.read(position)).changed).toEqual([]);
      expect(await store.keys.findByDigest(key.secretDigest)).toMatchObject({ counter: undefined });
      expect(await updateRemaining(management, key.id, "set", 3)).toEqual(updated(key, 3, 2));
      expect(await store.keys.findByDigest(key.secretDigest)).toMatchObject({ counter: { remaining: 3 } });
      expect(await charge(store, key, 1)).toEqual(settled(1, 2));
      expect(await updateRemaining(management, key.id, "increment", 1)).toEqual(updated(key, 3, 3));
      expect(await updateRemaining(management, key.id, "set", undefined)).toEqual(updated(key, undefined, 4));
      expect(await store.keys.findByDigest(key.secretDigest)).toMatchObject({ counter: undefined });
      expect(await charge(store, key, 1)).toEqual({ outcome: "missing" });
      expect(await updateRemaining(management, key.id, "increment", 1)).toEqual(refused("noCounter"));
      // There is nothing to take away, but the key was changed.
      expect(await updateRemaining(management, key.id, "set", undefined)).toEqual(updated(key, undefined, 5));

      const refilled = await created(store, clock, { remaining: 1, refill: refillRule() });
      await updateRemaining(management, refilled.id, "set", undefined);
      await updateRemaining(management, refilled.id, "set", 2);
      clock.stepTo(nextDay);
      expect(await charge(store, refilled, 1)).toEqual(settled(1, 1));
    },
  },
  {
    name: "a refill that is due comes before the update, once, and the rule goes on",
    async run(store, clock) {
      const { management } = store;
      const days = ["2026-01-15", "2026-01-16", "2026-01-17"].map((day) => `${day}T23:59:59.999Z`);
      for (const interval of ["daily", "monthly"] as const) {
        for (const carryOver of [false, true]) {
          clock.stepTo(days[0] as string);
          const refill = refillRule({ interval, carryOver });
          const [added, taken, set] = await Promise.all([
            created(store, clock, { remaining: 3, refill }),
            created(store, clock, { remaining: 3, refill }),
            created(store, clock, { remaining: 3, refill }),
          ]);
          expect(await updateRemaining(management, added.id, "increment", 1)).toEqual(updated(added, 4, 2));
          expect(await updateRemaining(management, added.id, "decrement", 1)).toEqual(updated(added, 3, 3));
          // One boundary later.
          clock.stepTo(interval === "daily" ? nextDay : "2026-02-01T00:00:00.000Z");
          const due = carryOver ? 13 : 10;
          expect(await updateRemaining(management, added.id, "increment", 20)).toEqual(updated(added, due + 20, 4));
          expect(await updateRemaining(management, taken.id, "decrement", 9)).toEqual(updated(taken, due - 9, 2));
          expect(await updateRemaining(management, set.id, "set", 2)).toEqual(updated(set, 2, 2));
          expect(await charge(store, added, 1)).toEqual(settled(1, due + 19));
          expect(await charge(store, taken, 1)).toEqual(settled(1, due - 10));
          expect(await charge(store, set, 1)).toEqual(settled(1, 1));
          // And one more.
          clock.stepTo(interval === "daily" ? "2026-01-17T00:00:00.000Z" : "2026-03-01T00:00:00.000Z");
          expect(await charge(store, set, 1)).toEqual(settled(1, carryOver ? 10 : 9));
        }
      }
    },
  },
  {
    name: "an update refused after a refill was due leaves that refill due",
    async run(store, clock) {
      clock.stepTo(noon);
      const key = await created(store, clock, { remaining: 3, refill: refillRule({ carryOver: true }) });
      clock.stepTo(nextDay);
      expect(await updateRemaining(store.management, key.id, "decrement", 14)).toEqual(refused("belowZero"));
      expect(await updateRemaining(store.management, key.id, "increment", remainingMax - 12)).toEqual(
        refused("aboveMax"),
      );
      expect(await charge(store, key, 1)).toEqual(settled(1, 12));
    },
  },
  {
    name: "an update of a missing or deleted key finds nothing",
    async run(store, clock) {
      const key = await created(store, clock, { remaining: 5 });
      await deleteKey(store.management, key.id);
      for (const keyId of [key.id, key.secretDigest, "key of nobody", ""]) {
        expect(await updateRemaining(store.management, keyId, "set", 1)).toEqual({ outcome: "missing" });
        expect(await updateRemaining(store.management, keyId, "set", undefined)).toEqual({ outcome: "missing" });
        expect(await updateRemaining(store.management, keyId, "decrement", 1)).toEqual({ outcome: "missing" });
      }
      expect(await charge(store, key, 1)).toEqual({ outcome: "missing" });
    },
  },
  {
    name: "an update is told to readers of the change feed",
    async run(store, clock) {
      const key = await created(store, clock);
      let { position } = await store.changes.read(undefined);
      for (const [op, value] of [
        ["set", 5],
        ["increment", 1],
        ["decrement", 1],
        ["set", undefined],
      ] as const) {
        await updateRemaining(store.management, key.id, op, value);
        const news = await store.changes.read(position);
        expect(news.changed, op).toEqual([{ kind: "key", keyId: key.id, digests: [key.secretDigest] }]);
        position = news.position;
      }
    },
  },
  {
    name: "uses and updates at once happen one after the other: each answer follows from another, and so does the last balance",
    async run(store, clock) {
      const key = await created(store, clock, { remaining: 100 });
      const [other, bystander] = [await created(store, clock, { remaining: 7 }), await created(store, clock)];
      const uses = Array.from({ length: 60 }, async () => stepOfCharge(await charge(store, key, 1)));
      const changes = Array.from({ length: 30 }, (_, i): Pick<UpdateRemaining, "op" | "value"> => {
        // Far apart, so that a wrong balance is not one that another step explains.
        if (i % 10 === 0) return { op: "set", value: (i + 1) * 1000 };
        return i % 2 === 0 ? { op: "increment", value: 300 + i } : { op: "decrement", value: 10 + i };
      });
      const versions: number[] = [];
      const updates = changes.map(async (change) => {
        const outcome = await updateRemaining(store.management, key.id, change.op, change.value);
        if (outcome.outcome === "done") versions.push(outcome.answer?.version ?? 0);
        return stepOfUpdate(change, outcome);
      });
      const more = Array.from({ length: 60 }, async () => stepOfCharge(await charge(store, key, 1)));
      const steps = (await Promise.all([...uses, ...updates, ...more])).filter((step) => step !== undefined);
      const last = stepOfCharge(await charge(store, key, 1));
      expectExplained(100, steps, last.before as number);
      expect(versions.sort((a, b) => a - b)).toEqual(versions.map((_, i) => i + 2));
      expect(await charge(store, other, 1)).toEqual(settled(1, 6));
      expect(await charge(store, bystander, 1)).toEqual({ outcome: "missing" });
    },
  },
];
