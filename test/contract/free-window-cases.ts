import { expect } from "vitest";
import type { PermitAsk } from "../../src/domain/permit-window.ts";
import { freeStandingSubject } from "../../src/domain/subject.ts";
import { ones } from "../support/ones.ts";
import type { ContractCase } from "./contract-case.ts";
import { ask, createdStrict, permitAsk, strict, windowMs } from "./permit-asks.ts";
import { exchange } from "./settle.ts";

const dayMs = 86_400_000;
const named = (identifier: string) => ({
  id: freeStandingSubject({ namespace: "n", identifier, apiId: undefined }, strict(1)),
});
const bringing = (limit: number, given: Partial<PermitAsk>): Partial<PermitAsk> => ({
  ...given,
  sentRule: { limit, durationMs: windowMs },
});

/** What the permit ledger promises for limits that asks bring with them. */
export const freeWindowCases: readonly ContractCase[] = [
  {
    name: "a free-standing window is made when it is first asked for, and filled up to the limit that its ask names",
    async run(store, clock) {
      const first = await ask(store, named("first"), bringing(5, { waiting: ones(3) }));
      expect(first).toMatchObject({ granted: 3, left: 2, limit: 5, endsInMs: windowMs, durationMs: windowMs });
      expect(first.gen).toBeGreaterThanOrEqual(clock.nowMs());
      expect(await ask(store, named("first"), bringing(5, { waiting: ones(9) }))).toMatchObject({
        gen: first.gen,
        granted: 2,
        left: 0,
      });
      clock.advance(windowMs);
      const next = await ask(store, named("first"), bringing(5, { waiting: ones(9) }));
      expect(next).toMatchObject({ gen: first.gen + 1, granted: 5 });
    },
  },
  {
    name: "a free-standing window is not opened by a return, a wish, or a cost above its limit",
    async run(store) {
      const asks = [{ returned: 3 }, { inAdvance: 5 }, { waiting: [{ cost: 6, count: 1 }] }];
      for (const given of asks)
        expect(await ask(store, named("idle"), bringing(5, given))).toMatchObject({ granted: 0, endsInMs: 0 });
    },
  },
  {
    name: "each ask is held to the limit that it brings, and all are counted in one window",
    async run(store) {
      const many = named("many");
      const { gen } = await ask(store, many, bringing(5, { waiting: ones(4) }));
      expect(await ask(store, many, bringing(3, { waiting: ones(1) }))).toMatchObject({
        gen,
        granted: 0,
        left: 0,
        limit: 3,
      });
      expect(await ask(store, many, bringing(9, { waiting: ones(9) }))).toMatchObject({ gen, granted: 5, limit: 9 });
      expect(await ask(store, many, bringing(5, { gen, waiting: ones(1), returned: 6 }))).toMatchObject({
        granted: 1,
        left: 1,
      });
    },
  },
  {
    name: "a subject that has no window is missing to an ask that brings no limit",
    async run(store) {
      expect(await exchange(store, [{ subject: named("none").id, ...permitAsk({ waiting: ones(1) }) }])).toEqual([
        { outcome: "missing" },
      ]);
    },
  },
  {
    name: "free-standing windows are settled beside those of keys, in any order, each once",
    async run(store, clock) {
      const key = await createdStrict(store, clock, 2);
      const subjects = ["z", "a", "m"].map((identifier) => named(identifier).id);
      const asks = [...subjects, key.id].map((subject) => ({
        subject,
        ...permitAsk(subject === key.id ? { waiting: ones(5) } : bringing(3, { waiting: ones(5) })),
      }));
      const granted = (await exchange(store, asks)).map((result) =>
        result.outcome === "settled" ? result.granted : -1,
      );
      expect(granted).toEqual([3, 3, 3, 2]);
    },
  },
  {
    name: "a free-standing window that has been over for a day is removed; made again it has a later generation, so that a late return counts for nothing",
    async run(store, clock) {
      const old = named("old");
      const { gen } = await ask(store, old, bringing(5, { waiting: ones(5) }));
      clock.advance(windowMs + dayMs - 1);
      await store.tidy(clock.nowMs());
      expect(await ask(store, old, bringing(5, { gen }))).toMatchObject({ gen });
      const key = await createdStrict(store, clock, 2);
      await ask(store, key, { waiting: ones(2) });
      clock.advance(windowMs + 2);
      await store.tidy(clock.nowMs());
      expect(await exchange(store, [{ subject: old.id, ...permitAsk() }])).toEqual([{ outcome: "missing" }]);
      expect(await ask(store, key, {}), "the window of a key stays").toMatchObject({ gen: 1 });

      const again = await ask(store, old, bringing(5, { waiting: ones(5) }));
      expect(again).toMatchObject({ granted: 5, left: 0 });
      expect(again.gen).toBeGreaterThan(gen);
      expect(await ask(store, old, bringing(5, { gen, returned: 5, waiting: ones(1) }))).toMatchObject({ granted: 0 });
    },
  },
];
