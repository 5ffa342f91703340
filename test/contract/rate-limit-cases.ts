import { expect } from "vitest";
import type { NewKey } from "../../src/domain/key.ts";
import type { RateLimit } from "../../src/domain/rate-limit.ts";
import { createKey, deleteKey, setRateLimit } from "../support/manage.ts";
import { ones } from "../support/ones.ts";
import type { ContractCase } from "./contract-case.ts";
import { ask, createdStrict, permitAsk, strict, windowMs } from "./permit-asks.ts";
import { foundAs, sampleKey } from "./sample-keys.ts";
import { exchange } from "./settle.ts";
import { created } from "./usage-cases.ts";

const local = (limit: number): RateLimit => ({ ...strict(limit), mode: "local" });

export const rateLimitCases: readonly ContractCase[] = [
  {
    name: "a changed rate limit is found with the key, and nothing else of any key is changed by it",
    async run(store, clock) {
      const given = { ownerId: "owner", meta: { plan: "pro" }, remaining: 5, rateLimit: strict(10) };
      const [key, other] = [1, 2].map(() => sampleKey(clock, given)) as [NewKey, NewKey];
      for (const each of [key, other]) await createKey(store.management, each);
      for (const rateLimit of [strict(7, 3000), local(3), undefined, strict(1)]) {
        expect(await setRateLimit(store.management, key.id, rateLimit)).toEqual([key.secretDigest]);
        expect(await store.keys.findByDigest(key.secretDigest)).toStrictEqual(foundAs({ ...key, rateLimit }));
      }
      expect(await store.keys.findByDigest(other.secretDigest)).toStrictEqual(foundAs(other));
      expect(await ask(store, other, { waiting: ones(10) })).toMatchObject({ granted: 10 });
    },
  },
  {
    name: "changing the rate limit of a missing or deleted key answers undefined and stores nothing",
    async run(store, clock) {
      const key = await createdStrict(store, clock, 10);
      await deleteKey(store.management, key.id);
      for (const id of [key.id, "unknown", ""]) {
        for (const rateLimit of [strict(5), local(5), undefined])
          expect(await setRateLimit(store.management, id, rateLimit)).toBeUndefined();
        expect(await exchange(store, [{ subject: id, ...permitAsk({ waiting: ones(1) }) }])).toEqual([
          { outcome: "missing" },
        ]);
      }
    },
  },
  {
    name: "a raised limit shows at the next ask, in the same window",
    async run(store, clock) {
      const key = await createdStrict(store, clock, 10);
      const { endsAtMs } = await ask(store, key, { waiting: ones(10) });
      clock.advance(1000);
      await setRateLimit(store.management, key.id, strict(15));
      const grant = await ask(store, key, { waiting: ones(10) });
      expect(grant).toMatchObject({ gen: 1, granted: 5, left: 0, outstanding: 15, endsAtMs, limit: 15 });
    },
  },
  {
    name: "a lowered limit gives no new permits until as many have come back, and takes none away",
    async run(store, clock) {
      const key = await createdStrict(store, clock, 10);
      await ask(store, key, { waiting: ones(8) });
      await setRateLimit(store.management, key.id, strict(5));
      const denied = await ask(store, key, { waiting: ones(1) });
      expect(denied).toMatchObject({ gen: 1, granted: 0, left: 0, outstanding: 8, limit: 5 });
      expect(await ask(store, key, { waiting: ones(9), gen: 1, returned: 4 })).toMatchObject({
        granted: 1,
        outstanding: 5,
      });
      clock.advance(windowMs);
      expect(await ask(store, key, { waiting: ones(9) })).toMatchObject({ gen: 2, granted: 5 });
    },
  },
  {
    name: "a new duration counts from the next window on: an open window keeps its end",
    async run(store, clock) {
      const [shorter, longer] = [await createdStrict(store, clock, 10), await createdStrict(store, clock, 10)];
      for (const key of [shorter, longer]) await ask(store, key, { waiting: ones(10) });
      await setRateLimit(store.management, shorter.id, strict(10, 1000));
      await setRateLimit(store.management, longer.id, strict(10, 5 * windowMs));
      for (const key of [shorter, longer])
        expect(await ask(store, key, { waiting: ones(1) })).toMatchObject({ gen: 1, granted: 0, endsInMs: windowMs });
      clock.advance(windowMs - 1);
      for (const key of [shorter, longer])
        expect(await ask(store, key, { waiting: ones(1) })).toMatchObject({ gen: 1, granted: 0, endsInMs: 1 });
      clock.advance(1);
      expect(await ask(store, shorter, { waiting: ones(1) })).toMatchObject({ gen: 2, endsInMs: 1000 });
      expect(await ask(store, longer, { waiting: ones(1) })).toMatchObject({ gen: 2, endsInMs: 5 * windowMs });
    },
  },
  {
    name: "a key that becomes strict has permits, with any limit before or none",
    async run(store, clock) {
      for (const rateLimit of [undefined, local(3)]) {
        const key = await created(store, clock, { rateLimit });
        await setRateLimit(store.management, key.id, strict(5));
        expect(await ask(store, key, { waiting: ones(9) })).toMatchObject({ gen: 1, granted: 5, endsInMs: windowMs });
      }
    },
  },
  {
    name: "an open window survives every change of mode: no sequence of changes grants its limit again",
    async run(store, clock) {
      for (const detour of [[local(10)], [undefined], [undefined, local(10), strict(5), undefined]]) {
        const key = await createdStrict(store, clock, 10);
        const { endsAtMs } = await ask(store, key, { waiting: ones(9) });
        for (const rateLimit of [...detour, strict(10)]) await setRateLimit(store.management, key.id, rateLimit);
        expect(await ask(store, key, { waiting: ones(9) })).toMatchObject({
          gen: 1,
          granted: 1,
          outstanding: 10,
          endsAtMs,
        });
      }
    },
  },
  {
    name: "a key that lost its limit is missing; one that became local still serves replicas that do not know it yet",
    async run(store, clock) {
      const key = await createdStrict(store, clock, 10);
      await setRateLimit(store.management, key.id, local(4));
      expect(await ask(store, key, { waiting: ones(9) })).toMatchObject({ gen: 1, granted: 4, limit: 4 });
      await setRateLimit(store.management, key.id, undefined);
      expect(await exchange(store, [{ subject: key.id, ...permitAsk({ waiting: ones(1) }) }])).toEqual([
        { outcome: "missing" },
      ]);
    },
  },
];
