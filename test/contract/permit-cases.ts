import { expect } from "vitest";
import type { NewKey } from "../../src/domain/key.ts";
import { limitMax } from "../../src/domain/rate-limit.ts";
import { createKeys, deleteKey } from "../support/manage.ts";
import { ones } from "../support/ones.ts";
import type { ContractCase } from "./contract-case.ts";
import { ask, createdStrict, permitAsk, strict, windowMs } from "./permit-asks.ts";
import { sampleKey } from "./sample-keys.ts";
import { exchange } from "./settle.ts";
import { created } from "./usage-cases.ts";

const missing = { outcome: "missing" };

/** What the ledger of permits promises. Time only goes on here. */
export const permitCases: readonly ContractCase[] = [
  {
    name: "a window opens with a waiting request, never with a wish, a return or a report",
    async run(store, clock) {
      const key = await createdStrict(store, clock, 10);
      const counts = { granted: 0, left: 0, outstanding: 0, contended: false, limit: 10 };
      const closed = { ...counts, endsInMs: 0, clockBehind: false };
      for (const idle of [{}, { inAdvance: 5 }, { returned: 3 }, { spent: 3 }, { waiting: ones(-1), inAdvance: 5 }])
        expect(await ask(store, key, idle)).toEqual({ ...closed, gen: 0, endsAtMs: 0, durationMs: 0 });
      const { endsAtMs } = await ask(store, key, { waiting: ones(9) });
      clock.advance(windowMs);
      for (const idle of [{ inAdvance: 5 }, { gen: 1, returned: 3 }, { gen: 1, spent: 3 }])
        expect(await ask(store, key, idle)).toEqual({ ...closed, gen: 1, endsAtMs, durationMs: windowMs });
      expect(await ask(store, key, { waiting: ones(1) })).toMatchObject({ gen: 2, granted: 1, endsInMs: windowMs });
    },
  },
  {
    name: "a window grants exactly its limit, and says how many permits are left and how many are held",
    async run(store, clock) {
      const key = await createdStrict(store, clock, 10);
      const endsAtMs = clock.nowMs() + windowMs;
      const open = { gen: 1, endsInMs: windowMs, endsAtMs, durationMs: windowMs, clockBehind: false, limit: 10 };
      const grants = [];
      for (let i = 0; i < 4; i++)
        grants.push(await ask(store, key, { waiting: ones(4), gen: 1, spent: i === 0 ? 0 : 1 }));
      expect(grants).toEqual([
        { ...open, granted: 4, left: 6, outstanding: 4, contended: false },
        { ...open, granted: 4, left: 2, outstanding: 7, contended: false },
        { ...open, granted: 2, left: 0, outstanding: 8, contended: true },
        { ...open, granted: 0, left: 0, outstanding: 7, contended: true },
      ]);
    },
  },
  {
    name: "returned permits can be granted again, even to the ask that returns them",
    async run(store, clock) {
      const key = await createdStrict(store, clock, 10);
      await ask(store, key, { waiting: ones(10) });
      expect(await ask(store, key, { gen: 1, returned: 4 })).toMatchObject({ granted: 0, left: 4, outstanding: 6 });
      expect(await ask(store, key, { waiting: ones(7), gen: 1, returned: 3 })).toMatchObject({ granted: 7, left: 0 });
    },
  },
  {
    name: "an asker can return no more permits than are held",
    async run(store, clock) {
      const key = await createdStrict(store, clock, 10);
      await ask(store, key, { waiting: ones(10) });
      expect(await ask(store, key, { gen: 1, spent: 7 })).toMatchObject({ outstanding: 3, left: 0 });
      for (const returned of [1000, 3, limitMax])
        expect(await ask(store, key, { gen: 1, returned })).toMatchObject({ outstanding: 0, left: 3 });
      expect(await ask(store, key, { waiting: ones(10) })).toMatchObject({ granted: 3, left: 0 });
    },
  },
  {
    name: "no more permits can be spent than are held, and spent ones cannot be returned, not even in the same ask",
    async run(store, clock) {
      const key = await createdStrict(store, clock, 10);
      await ask(store, key, { waiting: ones(6) });
      expect(await ask(store, key, { gen: 1, spent: 4, returned: 6 })).toMatchObject({ outstanding: 0, left: 6 });
      expect(await ask(store, key, { gen: 1, spent: limitMax })).toMatchObject({ outstanding: 0, left: 6 });
      expect(await ask(store, key, { gen: 1, returned: 4 })).toMatchObject({ outstanding: 0, left: 6 });
      expect(await ask(store, key, { waiting: ones(10) })).toMatchObject({ granted: 6, outstanding: 6 });
    },
  },
  {
    name: "numbers below 0 count as 0",
    async run(store, clock) {
      const key = await createdStrict(store, clock, 10);
      await ask(store, key, { waiting: ones(6) });
      const before = await ask(store, key, { gen: 1, spent: 2 });
      const negative = { waiting: ones(-5), inAdvance: -5, returned: -5, spent: -5, holders: -5 };
      expect(await ask(store, key, { ...negative, gen: 1 })).toEqual({ ...before, granted: 0 });
      expect(await ask(store, key, { waiting: ones(10) })).toMatchObject({ granted: 4, outstanding: 8 });
    },
  },
  {
    name: "returns and reports for a window that is not open are dropped",
    async run(store, clock) {
      const key = await createdStrict(store, clock, 10);
      await ask(store, key, { waiting: ones(10) });
      clock.advance(windowMs);
      await ask(store, key, { waiting: ones(10), gen: 1, returned: 10 });
      for (const gen of [0, 1, 3])
        expect(await ask(store, key, { gen, returned: 4, spent: 1 })).toMatchObject({ left: 0, outstanding: 10 });
      expect(await ask(store, key, { gen: 2, returned: 4, spent: 1 })).toMatchObject({ left: 4, outstanding: 5 });
    },
  },
  {
    name: "an ask that opens a window brings no returned permits into it from the window before",
    async run(store, clock) {
      const key = await createdStrict(store, clock, 10);
      await ask(store, key, { waiting: ones(10) });
      clock.advance(windowMs);
      const grant = await ask(store, key, { waiting: ones(12), gen: 1, returned: 10, spent: 3 });
      expect(grant).toMatchObject({ gen: 2, granted: 10, left: 0, outstanding: 10 });
    },
  },
  {
    name: "a window ends its duration after it opened, to the millisecond, and the next begins with the next demand",
    async run(store, clock) {
      const key = await createdStrict(store, clock, 10);
      clock.advance(123);
      const { endsAtMs } = await ask(store, key, { waiting: ones(3) });
      expect(endsAtMs).toBe(clock.nowMs() + windowMs);
      clock.advance(windowMs - 1);
      expect(await ask(store, key, { waiting: ones(3) })).toMatchObject({ gen: 1, granted: 3, endsInMs: 1, endsAtMs });
      clock.advance(1);
      const grant = await ask(store, key, { waiting: ones(10) });
      expect(grant).toMatchObject({ gen: 2, granted: 10, endsInMs: windowMs, endsAtMs: endsAtMs + windowMs });
      clock.advance(10 * windowMs + 1);
      expect(await ask(store, key, { waiting: ones(1) })).toMatchObject({ gen: 3, granted: 1, endsInMs: windowMs });
    },
  },
  {
    name: "no asker gets more in advance than half of an equal part, and none gets any once few are left",
    async run(store, clock) {
      const key = await createdStrict(store, clock, 100);
      const greedy = { waiting: ones(1), inAdvance: 999 };
      expect(await ask(store, key, greedy)).toMatchObject({ granted: 50, left: 50, contended: false });
      expect(await ask(store, key, { ...greedy, holders: 4 })).toMatchObject({
        granted: 6,
        left: 44,
        contended: false,
      });
      expect(await ask(store, key, { inAdvance: 5, holders: 0 })).toMatchObject({ granted: 5, left: 39 });
      expect(await ask(store, key, { waiting: ones(20), inAdvance: 5 })).toMatchObject({ granted: 20, left: 19 });
      expect(await ask(store, key, { ...greedy, holders: 9 })).toMatchObject({
        granted: 1,
        left: 18,
        contended: false,
      });
      expect(await ask(store, key, { ...greedy, holders: 9 })).toMatchObject({ granted: 1, left: 17, contended: true });
      expect(await ask(store, key, greedy)).toMatchObject({ granted: 1, left: 16, contended: true });
      expect(await ask(store, key, { inAdvance: 10 })).toMatchObject({ granted: 0, left: 16, contended: true });
      expect(await ask(store, key, { gen: 1, returned: 80 })).toMatchObject({ left: 96, contended: true });
      clock.advance(windowMs);
      expect(await ask(store, key, greedy)).toMatchObject({ gen: 2, granted: 50, contended: false });
    },
  },
  {
    name: "a limit at its bound is granted exactly",
    async run(store, clock) {
      const key = await createdStrict(store, clock, limitMax, 30 * 24 * 3_600_000);
      const grant = await ask(store, key, { waiting: ones(1), inAdvance: limitMax - 1 });
      expect(grant).toMatchObject({ granted: 1_073_741_823, left: 1_073_741_824, endsInMs: 2_592_000_000 });
      expect(await ask(store, key, { waiting: ones(limitMax) })).toMatchObject({ granted: 1_073_741_824, left: 0 });
      const back = await ask(store, key, { gen: 1, returned: limitMax, spent: 1, holders: limitMax });
      expect(back).toMatchObject({ left: 2_147_483_646, outstanding: 0, limit: limitMax });
    },
  },
  {
    name: "keys that are unknown, deleted, without a limit or never strict are missing, and disturb no other",
    async run(store, clock) {
      const good = await createdStrict(store, clock, 10);
      const gone = await createdStrict(store, clock, 10);
      await ask(store, gone, { waiting: ones(1) });
      await deleteKey(store.management, gone.id);
      const unlimited = await created(store, clock);
      const local = await created(store, clock, { rateLimit: { ...strict(10), mode: "local" } });
      const other = await createdStrict(store, clock, 3);
      const ids = ["unknown", good.id, gone.id, unlimited.id, "", other.id, local.id];
      const asks = ids.map((subject) => ({ subject, ...permitAsk({ waiting: ones(5) }) }));
      expect(await exchange(store, asks)).toEqual([
        missing,
        expect.objectContaining({ outcome: "settled", granted: 5 }),
        missing,
        missing,
        missing,
        expect.objectContaining({ outcome: "settled", granted: 3 }),
        missing,
      ]);
    },
  },
  {
    name: "asking for no key answers nothing",
    async run(store) {
      expect(await exchange(store, [])).toEqual([]);
    },
  },
  {
    name: "500 keys in one call each get permits by their own limit, in the order asked for",
    async run(store, clock) {
      const keys = Array.from({ length: 500 }, (_, i) => sampleKey(clock, { rateLimit: strict(i + 1, 1000 + i) }));
      await createKeys(store.management, keys);
      const shuffled = keys.map((_, i) => keys[(i * 7) % 500] as NewKey);
      const asks = shuffled.map(({ id }, i) => ({ subject: id, ...permitAsk({ waiting: ones(1 + (i % 20)) }) }));
      const expected = shuffled.map(({ rateLimit = strict(0) }, i) => ({
        granted: Math.min(1 + (i % 20), rateLimit.limit),
        limit: rateLimit.limit,
        endsInMs: rateLimit.durationMs,
      }));
      expect(await exchange(store, asks)).toMatchObject(expected);
    },
  },
  {
    name: "300 asks for one key at once open one window, which gives exactly its limit",
    async run(store, clock) {
      const key = await createdStrict(store, clock, 200);
      const grants = await Promise.all(Array.from({ length: 300 }, () => ask(store, key, { waiting: ones(1) })));
      expect(new Set(grants.map(({ gen }) => gen))).toEqual(new Set([1]));
      expect(grants.reduce((sum, { granted }) => sum + granted, 0)).toBe(200);
      expect(await ask(store, key, { waiting: ones(1) })).toMatchObject({ granted: 0, left: 0, outstanding: 200 });
    },
  },
];
