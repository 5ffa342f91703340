import { expect } from "vitest";
import type { NewOwner } from "../../src/domain/owner.ts";
import { counterOfOwner, limitOfOwner } from "../../src/domain/subject.ts";
import { remainingMax } from "../../src/domain/usage.ts";
import type { UpdateRemaining } from "../../src/store/commands.ts";
import type { ConflictReason, Outcome } from "../../src/store/management.ts";
import type { Store } from "../../src/store/store.ts";
import type { ChargeResult } from "../../src/store/usage-ledger.ts";
import { expectExplained, stepOfCharge, stepOfUpdate } from "../support/balance-steps.ts";
import { createOwner, deleteOwner, updateOwner, updateOwnerRemaining } from "../support/manage.ts";
import { ones } from "../support/ones.ts";
import type { ContractCase } from "./contract-case.ts";
import { readOwner, sampleOwner } from "./owner-cases.ts";
import { ask, permitAsk, strict, windowMs } from "./permit-asks.ts";
import { refillRule } from "./sample-keys.ts";
import { exchange, settle } from "./settle.ts";
import { charge, created, settled } from "./usage-cases.ts";

const noon = "2026-01-15T12:00:00.000Z";
const nextDay = "2026-01-16T00:00:00.000Z";

async function createdOwner(store: Store, id: string, given: Partial<NewOwner> = {}): Promise<void> {
  expect(await createOwner(store.management, sampleOwner(id, given))).toMatchObject({ outcome: "done" });
}

const chargeOwner = (store: Store, ownerId: string, count: number) =>
  charge(store, { id: counterOfOwner(ownerId) }, count);

const wanted = (store: Store, ownerId: string, name: string, count: number) =>
  ask(store, { id: limitOfOwner(ownerId, name) }, { waiting: ones(count) });

async function areMissing(store: Store, ownerId: string, ...names: readonly string[]): Promise<readonly boolean[]> {
  const asks = names.map((name) => ({ subject: limitOfOwner(ownerId, name), ...permitAsk({ waiting: ones(1) }) }));
  return (await exchange(store, asks)).map(({ outcome }) => outcome === "missing");
}

const missing: ChargeResult = { outcome: "missing" };

function updated(remaining: number | undefined, version: number): Outcome<"updateOwnerRemaining"> {
  return { outcome: "done", changed: [], answer: { remaining, version } };
}

function refused(reason: ConflictReason): Outcome<"updateOwnerRemaining"> {
  return { outcome: "conflict", reason };
}

/** The counters and windows of owners. */
export const ownerCounterCases: readonly ContractCase[] = [
  {
    name: "the counter of an owner is charged alone and together with that of a key, and shows in the owner",
    async run(store, clock) {
      const key = await created(store, clock, { ownerId: "one", remaining: 10 });
      await createdOwner(store, "one", { remaining: 5 });
      await createdOwner(store, "other", { remaining: 5 });
      await createdOwner(store, "uncounted");
      expect(await chargeOwner(store, "one", 1)).toEqual(settled(1, 4));
      const both = { subject: key.id, shared: counterOfOwner("one"), cost: 3, count: 2 };
      expect(await settle(store, [both])).toEqual([{ ...settled(1, 7), sharedRemaining: 1 }]);
      expect(await store.keys.findOwner("one")).toMatchObject({ counter: { remaining: 1 } });
      expect(await readOwner(store, "one")).toMatchObject({ counter: { remaining: 1 }, version: 1 });
      expect(await chargeOwner(store, "other", 9)).toEqual(settled(5, 0));
      expect(await chargeOwner(store, "uncounted", 1)).toEqual(missing);
    },
  },
  {
    name: "what is left of an owner is set, incremented and decremented from where it is, within its bounds",
    async run(store) {
      const { management } = store;
      await createdOwner(store, "one", { remaining: 5 });
      await chargeOwner(store, "one", 2);
      const { position } = await store.changes.read(undefined);
      expect(await updateOwnerRemaining(management, "one", "decrement", 4)).toEqual(refused("belowZero"));
      expect(await updateOwnerRemaining(management, "one", "increment", remainingMax)).toEqual(refused("aboveMax"));
      expect((await store.changes.read(position)).changed).toEqual([]);
      expect(await updateOwnerRemaining(management, "one", "increment", 7)).toEqual(updated(10, 2));
      expect(await updateOwnerRemaining(management, "one", "decrement", 10)).toEqual(updated(0, 3));
      expect(await updateOwnerRemaining(management, "one", "set", remainingMax, { atMs: 77 })).toEqual(
        updated(remainingMax, 4),
      );
      const counter = { remaining: remainingMax, refill: undefined };
      expect(await readOwner(store, "one")).toMatchObject({ counter, version: 4, updatedAtMs: 77 });
      expect(await chargeOwner(store, "one", 1)).toEqual(settled(1, remainingMax - 1));
    },
  },
  {
    name: "only setting it gives an owner a counter, and setting it to nothing takes it away with its refill rule",
    async run(store, clock) {
      const { management } = store;
      clock.stepTo(noon);
      await createdOwner(store, "one");
      for (const op of ["increment", "decrement"] as const)
        expect(await updateOwnerRemaining(management, "one", op, 1)).toEqual(refused("noCounter"));
      expect(await updateOwner(management, "one", { refill: refillRule() })).toEqual(refused("noCounter"));
      expect(await updateOwnerRemaining(management, "one", "set", 3)).toEqual(updated(3, 2));
      expect(await chargeOwner(store, "one", 1)).toEqual(settled(1, 2));
      expect(await updateOwner(management, "one", { refill: refillRule() })).toMatchObject({ outcome: "done" });
      expect(await updateOwnerRemaining(management, "one", "set", undefined)).toEqual(updated(undefined, 4));
      expect(await readOwner(store, "one")).toMatchObject({ counter: undefined });
      expect(await store.keys.findOwner("one")).toMatchObject({ counter: undefined });
      expect(await chargeOwner(store, "one", 1)).toEqual(missing);
      expect(await updateOwnerRemaining(management, "one", "set", 2)).toEqual(updated(2, 5));
      clock.stepTo(nextDay);
      expect(await chargeOwner(store, "one", 1)).toEqual(settled(1, 1));
    },
  },
  {
    name: "a change of what is left with another version is a conflict, and of an unknown owner it is missing",
    async run(store, clock) {
      const { management } = store;
      const key = await created(store, clock, { ownerId: "unknown", remaining: 4 });
      await createdOwner(store, "one", { remaining: 5 });
      for (const [op, value] of [
        ["set", 9],
        ["increment", 1],
        ["set", undefined],
      ] as const) {
        expect(await updateOwnerRemaining(management, "one", op, value, { ifVersion: 2 })).toEqual(refused("version"));
        for (const id of ["unknown", key.id, `../${key.id}`, "o/one"]) {
          expect(await updateOwnerRemaining(management, id, op, value)).toEqual(missing);
          expect(await updateOwnerRemaining(management, id, op, value, { ifVersion: 1 })).toEqual(missing);
        }
      }
      expect(await chargeOwner(store, "unknown", 1)).toEqual(missing);
      expect(await charge(store, key, 1)).toEqual(settled(1, 3));
      expect(await updateOwnerRemaining(management, "one", "set", 9, { ifVersion: 1 })).toEqual(updated(9, 2));
    },
  },
  {
    name: "a refill of an owner that is due comes before every change, once, and shows where the owner is read",
    async run(store, clock) {
      const { management } = store;
      const given = { remaining: 3, refill: refillRule({ amount: 10, carryOver: true }) };
      clock.stepTo(noon);
      for (const id of ["read", "raised", "changed"]) await createdOwner(store, id, given);
      clock.stepTo(nextDay);
      const refill = { ...given.refill, refilledThroughMs: Date.parse(nextDay) };
      expect(await readOwner(store, "read")).toMatchObject({ counter: { remaining: 13, refill } });
      const { items: owners } = await management.read({ kind: "owners", limit: 10 });
      expect(owners.map(({ counter }) => counter?.remaining)).toEqual([13, 13, 13]);
      // What was last stored: the ledger refills with the next charge.
      expect(await store.keys.findOwner("read")).toMatchObject({ counter: { remaining: 3 } });
      expect(await updateOwnerRemaining(management, "raised", "increment", 1)).toEqual(updated(14, 2));
      const monthly = refillRule({ interval: "monthly", amount: 100 });
      const begun = { ...monthly, refilledThroughMs: Date.parse(nextDay) };
      expect(await updateOwner(management, "changed", { refill: monthly })).toMatchObject({
        answer: { counter: { remaining: 13, refill: begun } },
      });
      for (const [id, left] of [
        ["read", 12],
        ["raised", 13],
        ["changed", 12],
      ] as const) {
        expect(await chargeOwner(store, id, 1)).toEqual(settled(1, left));
      }
      expect(await updateOwner(management, "changed", { refill: null })).toMatchObject({
        answer: { counter: { remaining: 12, refill: undefined } },
      });
    },
  },
  {
    name: "charges and changes of an owner's counter at once happen one after the other",
    async run(store) {
      await createdOwner(store, "one", { remaining: 100 });
      await createdOwner(store, "other", { remaining: 7 });
      const uses = () => Array.from({ length: 40 }, async () => stepOfCharge(await chargeOwner(store, "one", 1)));
      const before = uses();
      const changes = Array.from({ length: 20 }, (_, i): Pick<UpdateRemaining, "op" | "value"> => {
        // Far apart, so that a wrong balance is not one that another step explains.
        if (i % 10 === 0) return { op: "set", value: (i + 1) * 1000 };
        return i % 2 === 0 ? { op: "increment", value: 300 + i } : { op: "decrement", value: 10 + i };
      });
      const updates = changes.map(async (change) =>
        stepOfUpdate(change, await updateOwnerRemaining(store.management, "one", change.op, change.value)),
      );
      const steps = (await Promise.all([...before, ...updates, ...uses()])).filter((step) => step !== undefined);
      expectExplained(100, steps, stepOfCharge(await chargeOwner(store, "one", 1)).before as number);
      expect(await chargeOwner(store, "other", 1)).toEqual(settled(1, 6));
    },
  },
  {
    name: "each strict limit of an owner has a window of its own",
    async run(store, clock) {
      const local = { mode: "local", limit: 4, durationMs: 1000 } as const;
      const rateLimits = [
        { name: "minute", rule: strict(3) },
        { name: "second", rule: strict(5, 1000) },
        { name: "local", rule: local },
      ];
      // One is the end of the subject of the other.
      for (const id of ["one", "minute/one"]) await createdOwner(store, id, { rateLimits });
      expect(await wanted(store, "one", "minute", 9)).toMatchObject({ granted: 3, limit: 3, endsInMs: windowMs });
      expect(await wanted(store, "one", "second", 9)).toMatchObject({ granted: 5, limit: 5, endsInMs: 1000 });
      expect(await wanted(store, "minute/one", "minute", 9)).toMatchObject({ granted: 3 });
      expect(await areMissing(store, "one", "local", "none")).toEqual([true, true]);
      clock.advance(1000);
      expect(await wanted(store, "one", "minute", 9)).toMatchObject({ granted: 0 });
      expect(await wanted(store, "one", "second", 9)).toMatchObject({ granted: 5 });
    },
  },
  {
    name: "a limit of an owner that keeps its name keeps its open window, and one that was removed is missing",
    async run(store, clock) {
      const { management } = store;
      const limits = (rules: Readonly<Record<string, ReturnType<typeof strict>>>) =>
        Object.entries(rules).map(([name, rule]) => ({ name, rule }));
      for (const id of ["one", "a/one"]) await createdOwner(store, id, { rateLimits: limits({ a: strict(10) }) });
      const { gen, endsAtMs } = await wanted(store, "one", "a", 9);
      await updateOwner(management, "one", { rateLimits: limits({ b: strict(4), a: strict(12, 1000) }) });
      expect(await wanted(store, "one", "a", 9)).toMatchObject({ gen, endsAtMs, granted: 3, limit: 12 });
      expect(await wanted(store, "one", "b", 9)).toMatchObject({ granted: 4 });
      await updateOwner(management, "one", { rateLimits: limits({ c: strict(1) }) });
      expect(await areMissing(store, "one", "a", "b", "c")).toEqual([true, true, false]);
      await updateOwner(management, "one", { enabled: false });
      expect(await areMissing(store, "one", "c")).toEqual([false]);
      await updateOwner(management, "one", { rateLimits: null });
      await updateOwner(management, "one", { rateLimits: limits({ a: strict(15) }) });
      expect(await wanted(store, "one", "a", 9)).toMatchObject({ gen, endsAtMs, granted: 3, limit: 15 });
      const refusedChange = { rateLimits: limits({ c: strict(1), a: strict(99) }) };
      expect(await updateOwner(management, "one", refusedChange, { ifVersion: 1 })).toEqual(refused("version"));
      expect(await areMissing(store, "one", "c")).toEqual([true]);
      expect(await wanted(store, "one", "a", 9)).toMatchObject({ granted: 0, limit: 15 });
      expect(await wanted(store, "a/one", "a", 19)).toMatchObject({ granted: 10, limit: 10 });
      clock.advance(windowMs);
      expect(await wanted(store, "one", "a", 20)).toMatchObject({ gen: gen + 1, granted: 15 });
    },
  },
  {
    name: "a deleted owner leaves no counter and no window, not even of limits that it had once; those of others stay",
    async run(store, clock) {
      const { management } = store;
      const rateLimits = [{ name: "a", rule: strict(3) }];
      const ids = ["one", "a/one", "one/a", "One"];
      const key = await created(store, clock, { ownerId: "one", remaining: 5, rateLimit: strict(2), rateLimits });
      for (const id of ids) {
        await createdOwner(store, id, { remaining: 5, rateLimits });
        expect(await wanted(store, id, "a", 3)).toMatchObject({ granted: 3 });
        await updateOwner(management, id, { rateLimits: [{ name: "b", rule: strict(3) }] });
      }
      await deleteOwner(management, "one");
      expect(await chargeOwner(store, "one", 1)).toEqual(missing);
      const both = { subject: key.id, shared: counterOfOwner("one"), cost: 1, count: 1 };
      expect(await settle(store, [both])).toEqual([missing]);
      expect(await areMissing(store, "one", "a", "b")).toEqual([true, true]);
      for (const id of ids.slice(1)) {
        expect(await chargeOwner(store, id, 1)).toEqual(settled(1, 4));
        expect(await wanted(store, id, "b", 1)).toMatchObject({ granted: 1 });
        await updateOwner(management, id, { rateLimits });
        expect(await wanted(store, id, "a", 1)).toMatchObject({ granted: 0 });
      }
      expect(await charge(store, key, 1)).toEqual(settled(1, 4));
      expect(await ask(store, key, { waiting: ones(2) })).toMatchObject({ granted: 2 });
      // The same id again: a row that was left would still be used up, and a counter that was left would be there.
      await createdOwner(store, "one", { rateLimits });
      expect(await wanted(store, "one", "a", 3)).toMatchObject({ granted: 3 });
      expect(await chargeOwner(store, "one", 1)).toEqual(missing);
    },
  },
  {
    name: "permits of an owner that was deleted do not come back into windows of one that has its id later",
    async run(store, clock) {
      const { management } = store;
      const rateLimits = [{ name: "a", rule: strict(10) }];
      for (const isLater of [false, true]) {
        await createdOwner(store, "one", { rateLimits });
        const { gen } = await wanted(store, "one", "a", 10);
        clock.advance(1);
        await deleteOwner(management, "one");
        await createdOwner(store, "one", isLater ? {} : { rateLimits });
        if (isLater) await updateOwner(management, "one", { rateLimits });
        expect(await wanted(store, "one", "a", 10)).toMatchObject({ granted: 10 });
        const late = { gen, returned: 10, waiting: ones(5) };
        expect(await ask(store, { id: limitOfOwner("one", "a") }, late)).toMatchObject({ granted: 0 });
        await deleteOwner(management, "one");
      }
    },
  },
];
