import { expect } from "vitest";
import type { KeyFieldChanges, NewKey } from "../../src/domain/key.ts";
import type { Outcome } from "../../src/store/management.ts";
import type { Store } from "../../src/store/store.ts";
import { createKey, deleteKey, findKeptAnswer, testEvent, updateRemaining } from "../support/manage.ts";
import type { ContractCase } from "./contract-case.ts";
import { foundAs, refillRule, sampleKey, sampleRecord } from "./sample-keys.ts";
import { charge, created, settled } from "./usage-cases.ts";

function update(
  { management }: Pick<Store, "management">,
  keyId: string,
  changes: KeyFieldChanges,
  ifVersion?: number,
  atMs = 1,
): Promise<Outcome<"updateKey">> {
  return management.change({ kind: "updateKey", id: keyId, changes, ifVersion, event: testEvent(atMs) });
}

const readKey = ({ management }: Store, { id }: NewKey) => management.read({ kind: "key", id });

/** Every field with a value. */
const values = {
  ownerId: "owner",
  name: "name",
  meta: { plan: ["pro", 1, null] },
  enabled: false,
  expiresAtMs: 1_900_000_000_000,
  rateLimit: { mode: "local", limit: 7, durationMs: 60_000 },
  rateLimits: [
    { name: "b", rule: { mode: "strict", limit: 7, durationMs: 60_000 } },
    { name: "a", rule: { mode: "local", limit: 8, durationMs: 1000 } },
  ],
  costMax: 2 ** 31 - 1,
  environment: "test",
  permissions: ["docs.*", "admin"],
  ipAllow: ["10.0.0.0/8", "::1"],
} as const;

const removed = {
  ownerId: null,
  name: null,
  meta: {},
  enabled: true,
  expiresAtMs: null,
  rateLimit: null,
  rateLimits: null,
  costMax: null,
  environment: null,
  permissions: null,
  ipAllow: null,
} as const;
const absent = {
  ownerId: undefined,
  name: undefined,
  meta: {},
  enabled: true,
  expiresAtMs: undefined,
  rateLimit: undefined,
  rateLimits: undefined,
  costMax: undefined,
  environment: undefined,
  permissions: undefined,
  ipAllow: undefined,
};

export const updateKeyCases: readonly ContractCase[] = [
  {
    name: "each field of a key is set and removed alone, the others stay, and look-ups find it so",
    async run(store, clock) {
      const [empty, full] = [sampleKey(clock), sampleKey(clock, values)];
      for (const key of [empty, full]) await createKey(store.management, key);
      const set: Partial<NewKey> = {};
      const cleared: Partial<NewKey> = {};
      for (const field of Object.keys(values) as (keyof typeof values)[]) {
        Object.assign(set, { [field]: values[field] });
        Object.assign(cleared, { [field]: absent[field] });
        await update(store, empty.id, { [field]: values[field] });
        await update(store, full.id, { [field]: removed[field] });
        expect(await store.keys.findByDigest(empty.secretDigest)).toEqual(foundAs({ ...empty, ...set }));
        expect(await store.keys.findByDigest(full.secretDigest)).toEqual(foundAs({ ...full, ...cleared }));
      }
      const version = 1 + Object.keys(values).length;
      expect(await readKey(store, empty)).toMatchObject({ ...values, version });
      expect(await readKey(store, full)).toMatchObject({ ...absent, version });
    },
  },
  {
    name: "an update answers the key as it is then, and is told to readers of the feed",
    async run(store, clock) {
      const key = await created(store, clock, { remaining: 5, meta: { a: 1 } });
      const { position } = await store.changes.read(undefined);
      const told = { keyId: key.id, digests: [key.secretDigest] };
      const outcome = await update(store, key.id, { ...values, meta: { b: 2 } }, 1, 77);
      expect(outcome).toEqual({ outcome: "done", changed: [told], answer: await readKey(store, key) });
      expect(outcome).toMatchObject({ answer: { name: "name", meta: { b: 2 }, version: 2, updatedAtMs: 77 } });
      expect((await store.changes.read(position)).changed).toEqual([{ kind: "key", ...told }]);
    },
  },
  {
    name: "an update of another version, or of a key that is not there, changes nothing and is told to nobody",
    async run(store, clock) {
      const key = await created(store, clock, { remaining: 5, rateLimit: { ...values.rateLimit, mode: "strict" } });
      await update(store, key.id, { name: "second" }, 1);
      const before = await readKey(store, key);
      const { position } = await store.changes.read(undefined);
      const all = { ...values, refill: refillRule(), rateLimit: null };
      for (const version of [1, 3]) {
        expect(await update(store, key.id, all, version)).toEqual({ outcome: "conflict", reason: "version" });
      }
      await deleteKey(store.management, (await created(store, clock)).id);
      expect(await update(store, "key_none", all)).toEqual({ outcome: "missing" });
      expect(await update(store, "key_none", all, 1)).toEqual({ outcome: "missing" });
      expect(await readKey(store, key)).toEqual(before);
      expect((await store.changes.read(position)).changed).toHaveLength(1);
    },
  },
  {
    name: "of many updates of one version, one is made",
    async run(store, clock) {
      const key = await created(store, clock);
      const outcomes = await Promise.all(
        Array.from({ length: 10 }, (_, i) => update(store, key.id, { name: `${i}` }, 1)),
      );
      expect(outcomes.filter(({ outcome }) => outcome === "done")).toHaveLength(1);
      const made = outcomes.findIndex(({ outcome }) => outcome === "done");
      expect(await readKey(store, key)).toMatchObject({ name: `${made}`, version: 2 });
    },
  },
  {
    name: "a refill rule begins at the latest boundary, after the refills that were due by the rule before",
    async run(store, clock) {
      clock.stepTo("2026-01-15T12:00:00.000Z");
      const key = await created(store, clock, { remaining: 5 });
      const outcome = await update(store, key.id, { refill: refillRule({ amount: 10, carryOver: true }) });
      expect(outcome).toMatchObject({
        answer: { counter: { remaining: 5, refill: { refilledThroughMs: Date.UTC(2026, 0, 15) } } },
      });
      expect(await charge(store, key, 0)).toMatchObject(settled(0, 5));
      clock.stepTo("2026-01-17T00:00:00.000Z");
      // Two refills of 10 are due, and none of the new rule.
      await update(store, key.id, { refill: refillRule({ interval: "monthly", amount: 100, carryOver: true }) });
      expect(await charge(store, key, 1)).toMatchObject(settled(1, 24));
      clock.stepTo("2026-02-01T00:00:00.000Z");
      expect(await charge(store, key, 1)).toMatchObject(settled(1, 123));
      await update(store, key.id, { refill: refillRule({ amount: 1000 }) });
      expect(await charge(store, key, 1)).toMatchObject(settled(1, 122));
      clock.stepTo("2026-02-02T00:00:00.000Z");
      await update(store, key.id, { refill: null });
      expect(await charge(store, key, 1)).toMatchObject(settled(1, 999));
      clock.stepTo("2026-03-02T00:00:00.000Z");
      expect(await charge(store, key, 1)).toMatchObject(settled(1, 998));
    },
  },
  {
    name: "a key without a counter takes no refill rule, and nothing of such an update is made",
    async run(store, clock) {
      const key = await created(store, clock);
      const refused = { outcome: "conflict", reason: "noCounter" };
      expect(await update(store, key.id, { name: "name", refill: refillRule() })).toEqual(refused);
      expect(await readKey(store, key)).toMatchObject({ name: undefined, version: 1 });
      expect(await update(store, key.id, { refill: null })).toMatchObject({ outcome: "done" });
      await updateRemaining(store.management, key.id, "set", 0);
      expect(await update(store, key.id, { refill: refillRule() })).toMatchObject({
        answer: { version: 4, counter: { remaining: 0, refill: { amount: 10 } } },
      });
    },
  },
  {
    name: "every change is made once for one idempotency record, also one that cannot be made again",
    async run(store, clock) {
      const key = await created(store, clock, { remaining: 5 });
      const { management } = store;
      const twice = async (change: (lookup: string) => Promise<Outcome<never>>, lookup: string) => {
        expect(await change(lookup)).toMatchObject({ outcome: "done" });
        expect(await change(lookup)).toMatchObject({
          outcome: "repeated",
          record: { targetId: `target of ${lookup}` },
        });
      };
      const record = (lookup: string) => sampleRecord(clock, lookup, lookup);
      const keyId = key.id;
      await twice(
        (lookup) =>
          management.change(
            { kind: "updateKey", id: keyId, ifVersion: 1, changes: { name: "once" }, event: testEvent() },
            record(lookup),
          ) as Promise<Outcome<never>>,
        "updateKey",
      );
      await twice(
        (lookup) =>
          management.change(
            { kind: "updateRemaining", id: keyId, op: "decrement", value: 4, event: testEvent() },
            record(lookup),
          ) as Promise<Outcome<never>>,
        "updateRemaining",
      );
      expect(await readKey(store, key)).toMatchObject({ version: 3, counter: { remaining: 1 } });
      await twice(
        (lookup) => management.change({ kind: "deleteKey", id: keyId, event: testEvent() }, record(lookup)),
        "deleteKey",
      );
    },
  },
  {
    name: "a change that is not made keeps no record",
    async run(store, clock) {
      const { management } = store;
      const key = await created(store, clock);
      const record = sampleRecord(clock, "lookup", "answer");
      const name = "name";
      const updated = { kind: "updateKey", ifVersion: 9, changes: { name } } as const;
      for (const [id, expected] of [
        ["key_none", "missing"],
        [key.id, "conflict"],
      ] as const) {
        const outcome = await management.change({ ...updated, id, event: testEvent() }, record);
        expect(outcome).toMatchObject({ outcome: expected });
        expect(await findKeptAnswer(management, "lookup", clock.nowMs())).toBeUndefined();
      }
      const counter = {
        kind: "updateRemaining",
        id: key.id,
        op: "increment",
        value: 1,
        event: testEvent(),
      } as const;
      expect(await management.change(counter, record)).toMatchObject({ outcome: "conflict" });
      expect(await findKeptAnswer(management, "lookup", clock.nowMs())).toBeUndefined();
    },
  },
];
