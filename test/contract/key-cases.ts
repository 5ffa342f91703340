import { expect } from "vitest";
import type { NewKey } from "../../src/domain/key.ts";
import { remainingMax } from "../../src/domain/usage.ts";
import { createKey, deleteKey, done } from "../support/manage.ts";
import type { ContractCase } from "./contract-case.ts";
import { foundAs, refillRule, sampleKey } from "./sample-keys.ts";
import { settle } from "./settle.ts";

export const hardText = `O'Brien said "hi"; DROP TABLE keys; -- \\ % _ ? $1 \u0001\u001f\t\r\n ü 漢字 עברית 👩‍👩‍👧‍👦 \u{1f511}`;

/** An index has no room for three of them. */
function wideText(seed: number): string {
  let state = seed;
  const next = () => {
    state = (state * 48_271) % 2_147_483_647;
    return String.fromCodePoint(0x10000 + (state % 0x100000));
  };
  return Array.from({ length: 255 }, next).join("");
}

const samples: readonly (readonly [string, Partial<NewKey>])[] = [
  ["no optional field", {}],
  ["an owner and a name", { ownerId: "user_1", name: "Production" }],
  ["an owner and a name of no characters", { ownerId: "", name: "" }],
  ["quotes, control characters, Unicode and emoji", { apiId: hardText, ownerId: hardText, name: hardText }],
  ["an API id of 255 characters", { apiId: "漢".repeat(255) }],
  [
    "texts of 255 characters that take four bytes each and cannot be compressed",
    { apiId: wideText(1), ownerId: wideText(2), name: wideText(3), start: wideText(4) },
  ],
  ["nested metadata", { meta: { plan: "pro", deep: { list: [1, -0.5, 1e300, null, true, { a: [] }, ""] } } }],
  [
    "metadata with hard names",
    { meta: { [hardText]: hardText, "": 0, "\u0000": "\u0000", constructor: "c", toString: "t" } },
  ],
  ["metadata named like a prototype", { meta: JSON.parse('{"__proto__":{"admin":true}}') }],
  ["an expiry", { expiresAtMs: Date.UTC(2030, 0, 1) }],
  ["an expiry far beyond 32 bits", { expiresAtMs: Number.MAX_SAFE_INTEGER }],
  ["an expiry at the beginning of time", { expiresAtMs: 0 }],
  ["no leave to be used", { enabled: false }],
  ["a local rate limit at its lower bounds", { rateLimit: { mode: "local", limit: 1, durationMs: 1000 } }],
  [
    "a strict rate limit at its upper bounds",
    { rateLimit: { mode: "strict", limit: 2 ** 31 - 1, durationMs: 30 * 24 * 3_600_000 } },
  ],
  [
    "limits with names, in the order in which they were given",
    {
      rateLimits: [
        { name: "z", rule: { mode: "local", limit: 1, durationMs: 1000 } },
        { name: "A_b.c-9", rule: { mode: "strict", limit: 2 ** 31 - 1, durationMs: 30 * 24 * 3_600_000 } },
      ],
    },
  ],
  [
    "as many limits as there can be",
    {
      rateLimits: Array.from({ length: 8 }, (_, i) => ({
        name: `${i}`.padEnd(64, "."),
        rule: { mode: "strict", limit: i + 1, durationMs: 1000 },
      })),
    },
  ],
  ["an environment", { environment: "prod – Zürich\u{10ffff}" }],
  ["the lowest bound on costs", { costMax: 1 }],
  ["the highest bound on costs", { costMax: 2 ** 31 - 1 }],
  ["permissions", { permissions: ["*", "docs.*", "A-Z_0.9:x"] }],
  [
    "as many permissions as there can be",
    { permissions: Array.from({ length: 100 }, (_, i) => `${i}`.padEnd(128, ".")) },
  ],
  ["addresses", { ipAllow: ["1.2.3.4", "::ffff:10.0.0.0/104", "2001:db8::/32", "::1"] }],
  ["as many addresses as there can be", { ipAllow: Array.from({ length: 50 }, (_, i) => `10.${i}.0.0/16`) }],
  ["a counter at 0", { remaining: 0 }],
  ["a counter at its bound", { remaining: remainingMax }],
  ["a counter and a refill", { remaining: 5, refill: refillRule({ amount: remainingMax, carryOver: true }) }],
];

export const keyCases: readonly ContractCase[] = [
  {
    name: "a key is found by its digest with every field as it was stored",
    async run(store, clock) {
      for (const [what, given] of samples) {
        const key = sampleKey(clock, given);
        expect(await createKey(store.management, key), what).toEqual(done);
        expect(await store.keys.findByDigest(key.secretDigest), what).toStrictEqual(foundAs(key));
      }
    },
  },
  {
    name: "an unknown digest finds nothing",
    async run(store, clock) {
      const key = sampleKey(clock);
      await createKey(store.management, key);
      for (const digest of ["", key.id, `${key.secretDigest} `, key.secretDigest.slice(0, -1), "%"]) {
        expect(await store.keys.findByDigest(digest), digest).toBeUndefined();
      }
    },
  },
  {
    name: "many keys of one API, created at once, are each found by their own digest",
    async run(store, clock) {
      const keys = Array.from({ length: 50 }, (_, i) => sampleKey(clock, { name: `name ${i}`, remaining: i }));
      await Promise.all(keys.map((key) => createKey(store.management, key)));
      const found = await Promise.all(keys.map((key) => store.keys.findByDigest(key.secretDigest)));
      expect(found).toStrictEqual(keys.map(foundAs));
    },
  },
  {
    name: "deleting a key answers the digests of its secrets, and the key is not found any more",
    async run(store, clock) {
      const key = sampleKey(clock);
      await createKey(store.management, key);
      await store.keys.findByDigest(key.secretDigest);
      expect(await deleteKey(store.management, key.id)).toEqual([key.secretDigest]);
      expect(await store.keys.findByDigest(key.secretDigest)).toBeUndefined();
    },
  },
  {
    name: "the counter of a deleted key is missing",
    async run(store, clock) {
      const key = sampleKey(clock, { remaining: 5 });
      await createKey(store.management, key);
      await deleteKey(store.management, key.id);
      expect(await settle(store, [{ subject: key.id, cost: 1, count: 1 }])).toEqual([{ outcome: "missing" }]);
    },
  },
  {
    name: "deleting a missing or deleted key answers undefined",
    async run(store, clock) {
      const key = sampleKey(clock);
      await createKey(store.management, key);
      expect(await deleteKey(store.management, key.secretDigest)).toBeUndefined();
      expect(await deleteKey(store.management, "")).toBeUndefined();
      await deleteKey(store.management, key.id);
      expect(await deleteKey(store.management, key.id)).toBeUndefined();
    },
  },
  {
    name: "deleting a key of another version is a conflict, and the key stays",
    async run(store, clock) {
      const key = sampleKey(clock);
      await createKey(store.management, key);
      const deleteVersion = (ifVersion: number, id = key.id) =>
        store.management.change({
          kind: "deleteKey",
          id,
          ifVersion,
          event: { id: `evt_${ifVersion}`, atMs: 1, actor: "root_test" },
        });
      expect(await deleteVersion(2)).toEqual({ outcome: "conflict", reason: "version" });
      expect(await store.keys.findByDigest(key.secretDigest)).toBeDefined();
      expect(await deleteVersion(1, "key_none")).toEqual({ outcome: "missing" });
      expect(await deleteVersion(1)).toMatchObject({ outcome: "done" });
      expect(await store.keys.findByDigest(key.secretDigest)).toBeUndefined();
    },
  },
  {
    name: "of several deletions of one key at once, one deletes it",
    async run(store, clock) {
      const key = sampleKey(clock);
      await createKey(store.management, key);
      const answers = await Promise.all(Array.from({ length: 10 }, () => deleteKey(store.management, key.id)));
      expect(answers.filter((digests) => digests !== undefined)).toEqual([[key.secretDigest]]);
    },
  },
  {
    name: "deleting a key leaves the other keys of its API and owner as they were",
    async run(store, clock) {
      const [gone, stays] = [1, 2].map(() => sampleKey(clock, { ownerId: "owner", remaining: 3 }));
      await Promise.all([gone, stays].map((key) => createKey(store.management, key as NewKey)));
      await deleteKey(store.management, (gone as NewKey).id);
      expect(await store.keys.findByDigest((stays as NewKey).secretDigest)).toStrictEqual(foundAs(stays as NewKey));
      expect(await settle(store, [{ subject: (stays as NewKey).id, cost: 1, count: 1 }])).toEqual([
        { outcome: "settled", granted: 1, remaining: 2 },
      ]);
    },
  },
];
