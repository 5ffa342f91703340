import fc from "fast-check";
import { expect } from "vitest";
import type { NewKey } from "../../src/domain/key.ts";
import { hourAt, type UsageCounter } from "../../src/domain/usage.ts";
import type { Outcome } from "../../src/store/management.ts";
import type { Store } from "../../src/store/store.ts";
import type { Charge } from "../../src/store/usage-ledger.ts";
import { sized } from "../support/deep.ts";
import { createKey, deleteKey, updateRemaining } from "../support/manage.ts";
import { createMemoryStore } from "../support/memory-store.ts";
import type { TestClock } from "../support/test-clock.ts";
import type { ContractCase } from "./contract-case.ts";
import { sampleKey, sampleRecord } from "./sample-keys.ts";
import { settleInOrder } from "./settle.ts";

const runs = sized(12, 200);
const stepsPerRun = 40;

const anyKey = fc.nat(9);
const anyRefill = fc.option(
  fc.record({
    interval: fc.constantFrom("daily" as const, "monthly" as const),
    amount: fc.constantFrom(1, 5, 2_000_000_000),
    carryOver: fc.boolean(),
  }),
  { nil: undefined },
);
const anyStep = fc.oneof(
  fc.record({
    kind: fc.constant("create" as const),
    remaining: fc.option(fc.constantFrom(0, 1, 3, 2_147_483_647), { nil: undefined }),
    refill: anyRefill,
    /** Which idempotency key it carries, if any: few of them, so that some come again. */
    lookup: fc.option(fc.nat(2), { nil: undefined }),
  }),
  fc.record({
    kind: fc.constant("settle" as const),
    charges: fc.array(
      fc.record({
        key: anyKey,
        /** The counter that pays too, if it is another one. */
        shared: fc.option(anyKey, { nil: undefined }),
        cost: fc.oneof(fc.integer({ min: 1, max: 6 }), fc.constantFrom(1, 2_147_483_646, 2_147_483_647)),
        count: fc.oneof(fc.integer({ min: 1, max: 6 }), fc.constant(1_000_000)),
      }),
      { minLength: 1, maxLength: 12 },
    ),
  }),
  fc.record({
    kind: fc.constant("settle" as const),
    charges: fc.array(
      fc.record({
        key: anyKey,
        shared: fc.constant(undefined),
        cost: fc.constant(1),
        count: fc.integer({ min: 1, max: 6 }),
      }),
      { minLength: 1 },
    ),
  }),
  fc.record({ kind: fc.constant("find" as const), key: anyKey }),
  fc.record({
    kind: fc.constant("spending" as const),
    hours: fc.array(fc.integer({ min: -60, max: 40 }), { maxLength: 4 }),
  }),
  fc.record({ kind: fc.constant("delete" as const), key: anyKey }),
  fc.record({
    kind: fc.constant("update" as const),
    key: anyKey,
    change: fc.oneof(
      fc.record({ op: fc.constant("set" as const), value: fc.constantFrom(undefined, 0, 4, 2_147_483_647) }),
      fc.record({
        op: fc.constantFrom("increment" as const, "decrement" as const),
        value: fc.constantFrom(0, 1, 5, 2_147_483_647),
      }),
    ),
  }),
  fc.record({
    kind: fc.constant("time" as const),
    byHours: fc.constantFrom(-50, -5, 1, 7, 13, 24, 24 * 35),
  }),
);
type Step = typeof anyStep extends fc.Arbitrary<infer T> ? T : never;

export const agreementCase: ContractCase = {
  name: "any sequence of creates, uses, updates, look-ups, deletions and clock steps is answered as by the plain store",
  async run(store, clock) {
    // One plain store beside the one under test for all runs: each run works on keys of its own.
    const plain = createMemoryStore(clock);
    let run = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(anyStep, { minLength: 1, maxLength: stepsPerRun, size: "max" }), async (steps) => {
        run++;
        const keys: NewKey[] = [];
        for (const step of steps) {
          const [actual, expected] = await onBoth([store, plain], clock, step, keys, `run ${run}`);
          expect(actual).toEqual(expected);
        }
      }),
      { numRuns: runs },
    );
  },
};

/** Takes the step on both stores and returns both answers. */
function onBoth(stores: [Store, Store], clock: TestClock, step: Step, keys: NewKey[], run: string): Promise<unknown[]> {
  // Mostly a key that there is.
  const keyIdAt = (index: number) => keys[index % (keys.length + 1)]?.id ?? "unknown";
  switch (step.kind) {
    case "create": {
      const { remaining } = step;
      const key = sampleKey(clock, { remaining, refill: remaining === undefined ? undefined : step.refill });
      keys.push(key);
      const record = step.lookup === undefined ? undefined : sampleRecord(clock, `${run} ${step.lookup}`, key.id);
      return Promise.all(stores.map(async ({ management }) => comparable(await createKey(management, key, record))));
    }
    case "settle": {
      const charges = step.charges.map(({ key, shared: other, cost, count }): Charge => {
        const subject = keyIdAt(key);
        const shared = other === undefined ? subject : keyIdAt(other);
        return shared === subject ? { subject, cost, count } : { subject, shared, cost, count };
      });
      return Promise.all(stores.map((store) => settleInOrder(store, charges)));
    }
    case "find":
      return Promise.all(stores.map((store) => store.keys.findByDigest(keys[step.key]?.secretDigest ?? "unknown")));
    case "spending": {
      const hours = step.hours.map((hour) => hourAt(clock.nowMs()) + hour);
      const ids = ["unknown", ...keys.map(({ id }) => id)];
      return Promise.all(
        stores.map(async ({ management }) => {
          const { counters } = await management.read({ kind: "spending", of: "key", ids, hours });
          // When a counter was made is said by whoever makes it, not by the ledger.
          return counters.map((each) => ({ ...each, counter: each?.counter && balanceOf(each.counter) }));
        }),
      );
    }
    case "delete":
      return Promise.all(stores.map((store) => deleteKey(store.management, keyIdAt(step.key))));
    case "update": {
      const { op, value } = step.change;
      const keyId = keyIdAt(step.key);
      return Promise.all(stores.map(({ management }) => updateRemaining(management, keyId, op, value)));
    }
    case "time":
      clock.stepTo(clock.nowMs() + step.byHours * 3_600_000);
      return Promise.resolve([0, 0]);
  }
}

function balanceOf({ remaining, refill, meter: { sinceMs: _, ...meter } }: UsageCounter): object {
  return { remaining, refill, meter };
}

/** A kept record may hold more than the two fields that are promised of it. */
function comparable(outcome: Outcome): unknown {
  if (outcome.outcome !== "repeated") return outcome;
  const { requestDigest, sealedAnswer } = outcome.record;
  return { outcome: "repeated", requestDigest, sealedAnswer };
}
