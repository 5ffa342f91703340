import { expect } from "vitest";
import { createKey, done, findKeptAnswer } from "../support/manage.ts";
import type { ContractCase } from "./contract-case.ts";
import { foundAs, keptForMs, sampleKey, sampleRecord } from "./sample-keys.ts";
import { settle } from "./settle.ts";

export const idempotencyCases: readonly ContractCase[] = [
  {
    name: "a create whose record is kept already answers the kept record and stores nothing",
    async run(store, clock) {
      const [first, second] = [sampleKey(clock, { remaining: 1 }), sampleKey(clock, { remaining: 1 })];
      expect(await createKey(store.management, first, sampleRecord(clock, "lookup", "first"))).toEqual(done);
      const repeated = await createKey(store.management, second, sampleRecord(clock, "lookup", "second"));
      expect(repeated).toMatchObject({
        outcome: "repeated",
        record: { requestDigest: "request of first", sealedAnswer: "sealed first" },
      });
      expect(await store.keys.findByDigest(first.secretDigest)).toStrictEqual(foundAs(first));
      expect(await store.keys.findByDigest(second.secretDigest)).toBeUndefined();
      expect(await settle(store, [{ subject: second.id, cost: 1, count: 1 }])).toEqual([{ outcome: "missing" }]);
    },
  },
  {
    name: "a record is kept until the millisecond before its expiry",
    async run(store, clock) {
      await createKey(store.management, sampleKey(clock), sampleRecord(clock, "lookup", "first"));
      clock.advance(keptForMs - 1);
      const repeated = await createKey(store.management, sampleKey(clock), sampleRecord(clock, "lookup", "second"));
      expect(repeated).toMatchObject({ outcome: "repeated", record: { sealedAnswer: "sealed first" } });
    },
  },
  {
    name: "the answer of a kept record is found until the millisecond before its expiry, and that of no other",
    async run(store, clock) {
      expect(await findKeptAnswer(store.management, "lookup", clock.nowMs())).toBeUndefined();
      await createKey(store.management, sampleKey(clock), sampleRecord(clock, "lookup", "first"));
      const keptUntilMs = clock.nowMs() + keptForMs;
      expect(await findKeptAnswer(store.management, "lookup", keptUntilMs - 1)).toMatchObject({
        requestDigest: "request of first",
        sealedAnswer: "sealed first",
      });
      expect(await findKeptAnswer(store.management, "lookup", keptUntilMs)).toBeUndefined();
      expect(await findKeptAnswer(store.management, "another", clock.nowMs())).toBeUndefined();
    },
  },
  {
    name: "a record that has expired is replaced, and the key it stood for stays",
    async run(store, clock) {
      const [first, second] = [sampleKey(clock), sampleKey(clock)];
      await createKey(store.management, first, sampleRecord(clock, "lookup", "first"));
      clock.advance(keptForMs);
      const created = await createKey(store.management, second, sampleRecord(clock, "lookup", "second"));
      expect(created).toEqual(done);
      const repeated = await createKey(store.management, sampleKey(clock), sampleRecord(clock, "lookup", "third"));
      expect(repeated).toMatchObject({ outcome: "repeated", record: { sealedAnswer: "sealed second" } });
      expect(await store.keys.findByDigest(first.secretDigest)).toStrictEqual(foundAs(first));
      expect(await store.keys.findByDigest(second.secretDigest)).toStrictEqual(foundAs(second));
    },
  },
  {
    name: "tidying removes the records that have expired, and no others",
    async run(store, clock) {
      const startMs = clock.nowMs();
      await createKey(store.management, sampleKey(clock), sampleRecord(clock, "old", "old"));
      clock.advance(1);
      await createKey(store.management, sampleKey(clock), sampleRecord(clock, "young", "young"));
      await store.tidy(startMs + keptForMs);
      const kept = await createKey(store.management, sampleKey(clock), sampleRecord(clock, "young", "again"));
      expect(kept).toMatchObject({ outcome: "repeated", record: { sealedAnswer: "sealed young" } });
      // By this clock it would not have expired yet, so it has been removed.
      const removed = await createKey(store.management, sampleKey(clock), sampleRecord(clock, "old", "again"));
      expect(removed).toEqual(done);
    },
  },
  {
    name: "of many creates with one record at once, one is stored and all others answer with it",
    async run(store, clock) {
      const keys = Array.from({ length: 20 }, () => sampleKey(clock));
      const answers = await Promise.all(
        keys.map((key) => createKey(store.management, key, sampleRecord(clock, "lookup", key.id))),
      );
      const found = await Promise.all(keys.map((key) => store.keys.findByDigest(key.secretDigest)));
      const [stored, ...more] = found.filter((key) => key !== undefined);
      expect(more).toEqual([]);
      const created = keys.filter((_, i) => answers[i]?.outcome === "done");
      expect(created.map(({ id }) => id)).toEqual([stored?.id]);
      for (const answer of answers) {
        if (answer.outcome === "repeated") expect(answer.record.sealedAnswer).toBe(`sealed ${stored?.id}`);
      }
    },
  },
  {
    name: "creates with different records, or with none, do not touch each other",
    async run(store, clock) {
      const keys = Array.from({ length: 6 }, () => sampleKey(clock));
      const answers = await Promise.all(
        keys.map((key, i) =>
          createKey(store.management, key, i % 2 ? undefined : sampleRecord(clock, `lookup ${i}`, key.id)),
        ),
      );
      expect(answers.map(({ outcome }) => outcome)).toEqual(new Array(6).fill("done"));
      const found = await Promise.all(keys.map((key) => store.keys.findByDigest(key.secretDigest)));
      expect(found).toStrictEqual(keys.map(foundAs));
    },
  },
];
