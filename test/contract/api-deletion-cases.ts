import { expect } from "vitest";
import type { KeyDefaults } from "../../src/domain/fields.ts";
import type { Outcome } from "../../src/store/management.ts";
import { createApi, createKey, deleteApi, deleteApiKeys, done, stopApi, testEvent } from "../support/manage.ts";
import { listedApis, readApi } from "./api-cases.ts";
import type { ContractCase } from "./contract-case.ts";
import { foundAs, sampleKey, sampleRecord } from "./sample-keys.ts";
import { settle } from "./settle.ts";

const full: KeyDefaults = { prefix: "live", remaining: 0 };

export const apiDeletionCases: readonly ContractCase[] = [
  {
    name: "an API without keys is deleted, once, and its first key creates it anew",
    async run(store, clock) {
      const { management } = store;
      await createApi(management, "api", { name: "first", defaults: full, atMs: 5 });
      await createApi(management, "another");
      const outcomes = await Promise.all(Array.from({ length: 5 }, () => deleteApi(management, "api")));
      expect(outcomes.filter(({ outcome }) => outcome === "done")).toHaveLength(1);
      expect(outcomes.filter(({ outcome }) => outcome === "missing")).toHaveLength(4);
      expect(await readApi(store, "api")).toBeUndefined();
      expect((await listedApis(store, 9)).flat()).toEqual(["another"]);
      expect(await createKey(management, sampleKey(clock, { apiId: "api" }))).toEqual(done);
      expect(await readApi(store, "api")).toMatchObject({ name: undefined, defaults: {}, version: 1 });
    },
  },
  {
    name: "an API with keys is not deleted, and goes on taking keys",
    async run(store, clock) {
      const { management } = store;
      const key = sampleKey(clock, { apiId: "api" });
      await createKey(management, key);
      const before = await readApi(store, "api");
      expect(await deleteApi(management, "api")).toEqual({ outcome: "conflict", reason: "hasKeys" });
      expect(await readApi(store, "api")).toEqual(before);
      expect(await store.keys.findByDigest(key.secretDigest)).toBeDefined();
      expect(await createKey(management, sampleKey(clock, { apiId: "api" }))).toEqual(done);
    },
  },
  {
    name: "an API that was stopped takes no keys, leaves nothing of those that it refuses, and its keys are found as before",
    async run(store, clock) {
      const { management } = store;
      const [kept, refused] = [
        sampleKey(clock, { apiId: "api", remaining: 2 }),
        sampleKey(clock, { apiId: "api", remaining: 2 }),
      ];
      await createKey(management, kept);
      expect(await stopApi(management, "unknown")).toEqual({ outcome: "missing" });
      expect(await stopApi(management, "api")).toEqual(done);
      expect(await readApi(store, "api")).toMatchObject({ version: 2 });
      const conflict = { outcome: "conflict", reason: "apiIsDeleting" };
      expect(await createKey(management, refused, sampleRecord(clock, "lookup", "refused"))).toEqual(conflict);
      expect(await createKey(management, refused, sampleRecord(clock, "lookup", "refused"))).toEqual(conflict);
      const command = { kind: "createKey", created: refused, apiMustExist: true, event: testEvent(1) } as const;
      expect(await management.change(command)).toEqual(conflict);
      expect(await store.keys.findByDigest(refused.secretDigest)).toBeUndefined();
      expect(await settle(store, [{ subject: refused.id, cost: 1, count: 1 }])).toEqual([{ outcome: "missing" }]);
      expect(await store.keys.findByDigest(kept.secretDigest)).toStrictEqual(foundAs(kept));
      expect(await settle(store, [{ subject: kept.id, cost: 1, count: 1 }])).toMatchObject([
        { granted: 1, remaining: 1 },
      ]);
      expect(await createKey(management, sampleKey(clock, { apiId: "another" }))).toEqual(done);
    },
  },
  {
    name: "keys of an API that was stopped are deleted in pieces in the order of their ids, and reported with their digests",
    async run(store, clock) {
      const { management } = store;
      const strict = { mode: "strict", limit: 1, durationMs: 1000 } as const;
      const keys = ["e", "b", "d", "a", "c"].map((id) =>
        sampleKey(clock, { id: `key_api_${id}`, apiId: "api", remaining: 1, rateLimit: strict }),
      );
      const other = sampleKey(clock, { apiId: "api 2", remaining: 1 });
      for (const key of [...keys, other]) await createKey(management, key);
      expect(await deleteApiKeys(management, "api", 2)).toEqual({ outcome: "missing" });
      await stopApi(management, "api");
      const { position } = await store.changes.read(undefined);
      const pieces: string[][] = [];
      for (let after: string | undefined = ""; after !== undefined; ) {
        const outcome: Outcome<"deleteApiKeys"> = await deleteApiKeys(management, "api", 2, after);
        if (outcome.outcome !== "done") throw new Error(outcome.outcome);
        after = outcome.answer?.cursor;
        expect(after).toBe(["key_api_b", "key_api_d"][pieces.length]);
        for (const { keyId, digests } of outcome.changed) {
          expect(digests).toEqual([keys.find(({ id }) => id === keyId)?.secretDigest]);
        }
        pieces.push(outcome.changed.map(({ keyId }) => keyId).sort());
        const left = await Promise.all(keys.map((key) => management.read({ kind: "key", id: key.id })));
        expect(left.filter((key) => key !== undefined)).toHaveLength(5 - pieces.flat().length);
      }
      expect(pieces).toEqual([["key_api_a", "key_api_b"], ["key_api_c", "key_api_d"], ["key_api_e"]]);
      const { changed } = await store.changes.read(position);
      expect(changed).toHaveLength(5);
      expect(changed).toEqual(
        expect.arrayContaining(
          keys.map(({ id, secretDigest }) => ({ kind: "key", keyId: id, digests: [secretDigest] })),
        ),
      );
      for (const key of keys) {
        expect(await store.keys.findByDigest(key.secretDigest)).toBeUndefined();
        expect(await settle(store, [{ subject: key.id, cost: 1, count: 1 }])).toEqual([{ outcome: "missing" }]);
      }
      expect(await store.keys.findByDigest(other.secretDigest)).toStrictEqual(foundAs(other));
      expect(await deleteApi(management, "api", true)).toEqual(done);
      expect([await readApi(store, "api"), (await readApi(store, "api 2"))?.version]).toEqual([undefined, 1]);
    },
  },
  {
    name: "the last step of a forced deletion leaves an API that was made anew",
    async run(store) {
      const { management } = store;
      await createApi(management, "api");
      await stopApi(management, "api");
      expect(await deleteApi(management, "api", true)).toEqual(done);
      await createApi(management, "api", { name: "anew" });
      expect(await deleteApi(management, "api", true)).toEqual({ outcome: "missing" });
      expect(await deleteApiKeys(management, "api", 1)).toEqual({ outcome: "missing" });
      expect(await readApi(store, "api")).toMatchObject({ name: "anew" });
    },
  },
  {
    name: "the stop of an API whose record is kept is not repeated",
    async run(store, clock) {
      const { management } = store;
      await createApi(management, "api");
      const record = sampleRecord(clock, "lookup", "first");
      expect(await stopApi(management, "api", record)).toEqual(done);
      await deleteApi(management, "api", true);
      const key = sampleKey(clock, { apiId: "api" });
      await createKey(management, key);
      expect(await stopApi(management, "api", record)).toMatchObject({ outcome: "repeated" });
      expect(await createKey(management, sampleKey(clock, { apiId: "api" }))).toEqual(done);
    },
  },
];
