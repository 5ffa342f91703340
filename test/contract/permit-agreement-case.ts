import fc from "fast-check";
import { expect } from "vitest";
import type { NewKey } from "../../src/domain/key.ts";
import { limitMax, type RateLimit } from "../../src/domain/rate-limit.ts";
import type { Store } from "../../src/store/store.ts";
import { sized } from "../support/deep.ts";
import { createKey, deleteKey, setRateLimit } from "../support/manage.ts";
import { createMemoryStore } from "../support/memory-store.ts";
import { ones } from "../support/ones.ts";
import type { TestClock } from "../support/test-clock.ts";
import type { ContractCase } from "./contract-case.ts";
import { sampleKey } from "./sample-keys.ts";
import { exchange } from "./settle.ts";

const runs = sized(12, 200);
const stepsPerRun = 40;
const hourMs = 3_600_000;

const anyKey = fc.nat(4);
const anyRateLimit: fc.Arbitrary<RateLimit | undefined> = fc.option(
  fc.record({
    mode: fc.constantFrom("strict" as const, "strict" as const, "local" as const),
    limit: fc.constantFrom(1, 5, 30, limitMax),
    durationMs: fc.constantFrom(1000, 2500, 2_592_000_000),
  }),
  { nil: undefined, freq: 8 },
);
const anyCount = fc.oneof(fc.nat(8), fc.constantFrom(-3, 1000, limitMax));
const anyCost = fc.oneof(fc.integer({ min: 1, max: 20 }), fc.constantFrom(1, 1, -1, 0, 31, limitMax));
const anyWaiting = fc.oneof(
  // What has a statement of its own.
  anyCount.map(ones),
  fc.array(fc.record({ cost: anyCost, count: fc.oneof(fc.integer({ min: -1, max: 4 }), fc.constant(limitMax)) }), {
    maxLength: 8,
  }),
);
const anyAsk = fc.record({
  key: anyKey,
  waiting: anyWaiting,
  inAdvance: anyCount,
  // Windows are few: some of these are the open one.
  gen: fc.nat(4),
  returned: anyCount,
  spent: anyCount,
  holders: fc.oneof(fc.nat(4), fc.constantFrom(-1, limitMax)),
});
const anyStep = fc.oneof(
  fc.record({ kind: fc.constant("create" as const), rateLimit: anyRateLimit }),
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant("exchange" as const),
      asks: fc.uniqueArray(anyAsk, { selector: ({ key }) => key, minLength: 1 }),
    }),
  },
  fc.record({ kind: fc.constant("set" as const), key: anyKey, rateLimit: anyRateLimit }),
  fc.record({ kind: fc.constant("delete" as const), key: anyKey }),
  fc.record({ kind: fc.constant("time" as const), byMs: fc.constantFrom(1, 499, 500, 1000, 2_592_000_000) }),
  fc.record({ kind: fc.constant("clock" as const), byMs: fc.constantFrom(-2_600_000_000, -hourMs, -700, 700, hourMs) }),
);
type Step = typeof anyStep extends fc.Arbitrary<infer T> ? T : never;

export const permitAgreementCase: ContractCase = {
  name: "any sequence of asks, changed limits, time and set clocks is answered as the plain store answers it",
  async run(store, clock) {
    const plain = createMemoryStore(clock);
    await fc.assert(
      fc.asyncProperty(fc.array(anyStep, { minLength: 1, maxLength: stepsPerRun, size: "max" }), async (steps) => {
        const keys: NewKey[] = [];
        for (const step of steps) {
          const [actual, expected] = await onBoth([store, plain], clock, step, keys);
          expect(actual).toEqual(expected);
        }
      }),
      { numRuns: runs },
    );
  },
};

/** Takes the step on both stores and returns both answers. */
function onBoth(stores: [Store, Store], clock: TestClock, step: Step, keys: NewKey[]): Promise<unknown[]> {
  const keyIdAt = (index: number) => keys[index]?.id ?? `unknown ${index}`;
  switch (step.kind) {
    case "create": {
      const key = sampleKey(clock, { rateLimit: step.rateLimit });
      keys.push(key);
      return Promise.all(stores.map((store) => createKey(store.management, key)));
    }
    case "exchange": {
      const asks = step.asks.map(({ key, ...ask }) => ({ subject: keyIdAt(key), ...ask }));
      return Promise.all(stores.map((store) => exchange(store, asks)));
    }
    case "set":
      return Promise.all(stores.map((store) => setRateLimit(store.management, keyIdAt(step.key), step.rateLimit)));
    case "delete":
      return Promise.all(stores.map((store) => deleteKey(store.management, keyIdAt(step.key))));
    case "time":
      clock.advance(step.byMs);
      return Promise.resolve([0, 0]);
    case "clock":
      clock.stepTo(clock.nowMs() + step.byMs);
      return Promise.resolve([0, 0]);
  }
}
