import type { Key, NewKey } from "../../src/domain/key.ts";
import type { IdempotencyRecord } from "../../src/store/commands.ts";

import type { Query } from "../../src/store/queries.ts";
import { createMemoryStore } from "../support/memory-store.ts";
import { type BrokenStore, type KeyCalls, keys, records, shared, shows, stores, tidies } from "./break-store.ts";

export const brokenKeyStores: readonly BrokenStore[] = [
  // What is stored and found
  stores("loses the metadata", (key) => ({ ...key, meta: {} })),
  stores("loses owner and name", (key) => ({ ...key, ownerId: undefined, name: undefined })),
  stores("takes an empty text for none", (key) => ({ ...key, ownerId: key.ownerId || undefined })),
  stores("keeps one byte per character", (key) => ({
    ...key,
    apiId: Buffer.from(key.apiId, "latin1").toString("latin1"),
  })),
  stores("cuts an API id at 100 characters", (key) => ({ ...key, apiId: key.apiId.slice(0, 100) })),
  stores("escapes quotes twice", (key) => ({
    ...key,
    meta: JSON.parse(JSON.stringify(key.meta).replaceAll("\\", "")),
  })),
  stores("merges metadata into an object", (key) => ({ ...key, meta: Object.assign({}, key.meta) })),
  stores("loses the expiry", (key) => ({ ...key, expiresAtMs: undefined })),
  stores("keeps moments in 32 bits", (key) => ({ ...key, expiresAtMs: key.expiresAtMs && key.expiresAtMs | 0 })),
  stores("takes 0 for no expiry", (key) => ({ ...key, expiresAtMs: key.expiresAtMs || undefined })),
  stores("enables every key", (key) => ({ ...key, enabled: true })),
  stores("disables every key", (key) => ({ ...key, enabled: false })),
  stores("loses the rate limit", (key) => ({ ...key, rateLimit: undefined })),
  stores("loses limits with names", (key) => ({ ...key, rateLimits: undefined })),
  stores("keeps one limit with a name", (key) => ({ ...key, rateLimits: key.rateLimits?.slice(0, 1) })),
  stores("sorts limits by their names", (key) => ({
    ...key,
    rateLimits: key.rateLimits?.toSorted((a, b) => (a.name < b.name ? -1 : 1)),
  })),
  stores("loses the bound on costs", (key) => ({ ...key, costMax: undefined })),
  stores("loses the environment", (key) => ({ ...key, environment: undefined })),
  stores("loses the permissions", (key) => ({ ...key, permissions: undefined })),
  stores("loses the addresses", (key) => ({ ...key, ipAllow: undefined })),
  stores("keeps one address", (key) => ({ ...key, ipAllow: key.ipAllow?.slice(0, 1) })),
  stores("makes every rate limit local", (key) => ({
    ...key,
    rateLimit: key.rateLimit && { ...key.rateLimit, mode: "local" },
  })),
  stores("keeps durations in 31 bits", (key) => ({
    ...key,
    rateLimit: key.rateLimit && { ...key.rateLimit, durationMs: key.rateLimit.durationMs | 0 },
  })),
  stores("takes a counter at 0 for none", (key) => ({ ...key, remaining: key.remaining || undefined })),
  stores("keeps counters in 16 bits", (key) => ({ ...key, remaining: key.remaining && key.remaining & 0xffff })),
  stores("gives every key a counter", (key) => ({ ...key, remaining: key.remaining ?? 0 })),
  stores("lets a new key of an API replace the one before it", (key) => ({ ...key, id: key.apiId })),
  stores("forgets refills", (key) => ({ ...key, refill: undefined })),
  stores("makes every refill daily", (key) => ({ ...key, refill: key.refill && { ...key.refill, interval: "daily" } })),
  stores("makes every refill restore", (key) => ({
    ...key,
    refill: key.refill && { ...key.refill, carryOver: false },
  })),
  stores("makes every refill carry over", (key) => ({
    ...key,
    refill: key.refill && { ...key.refill, carryOver: true },
  })),
  keys("finds by the beginning of a digest", (inner) => ({
    findByDigest: async (digest) => (await inner.findByDigest(digest)) ?? inner.findByDigest(digest.trim()),
  })),
  keys("shows the balance of the first look-up for ever", (inner) => {
    const seen = new Map<string, Key | undefined>();
    return {
      async findByDigest(digest) {
        const key = seen.get(digest) ?? (await inner.findByDigest(digest));
        seen.set(digest, key);
        return key;
      },
    };
  }),
  keys("shows the balance of the creation", (inner) => {
    const created = new Map<string, number | undefined>();
    return {
      create(key, record) {
        created.set(key.secretDigest, key.remaining);
        return inner.create(key, record);
      },
      async findByDigest(digest) {
        const key = await inner.findByDigest(digest);
        return key?.counter ? { ...key, counter: { remaining: created.get(digest) ?? 0 } } : key;
      },
    };
  }),

  // MeterReading
  shows("shows no start", (key) => ({ ...key, start: "" })),
  shows("shows no metadata", (key) => ({ ...key, meta: {} })),
  shows("shows every key as enabled", (key) => ({ ...key, enabled: true })),
  shows("shows no rate limit", (key) => ({ ...key, rateLimit: undefined })),
  shows("shows no limits with names", (key) => ({ ...key, rateLimits: undefined })),
  shows("shows no bound on costs", (key) => ({ ...key, costMax: undefined })),
  shows("shows no environment", (key) => ({ ...key, environment: undefined })),
  shows("shows no permissions", (key) => ({ ...key, permissions: undefined })),
  shows("shows no addresses", (key) => ({ ...key, ipAllow: undefined })),
  shows("shows every key as never changed", (key) => ({ ...key, version: 1 })),
  shows("shows the creation as the last change", (key) => ({ ...key, updatedAtMs: key.createdAtMs })),
  shows("shows no balance", (key) => ({ ...key, counter: undefined })),
  shows("forgets when a counter was refilled", (key) => ({
    ...key,
    counter: key.counter?.refill && { ...key.counter, refill: { ...key.counter.refill, refilledThroughMs: 0 } },
  })),
  shows("finds no key", () => undefined),
  {
    mistake: "shows balances without refills that are due",
    open(clock) {
      const createdAtMs = clock.nowMs();
      let reading = false;
      const inner = createMemoryStore({
        nowMs: () => (reading ? createdAtMs : clock.nowMs()),
        monotonicMs: () => clock.monotonicMs(),
        lateMs: () => 0,
      });
      const read = <Asked extends Query>(query: Asked) => {
        reading = query.kind !== "keptAnswer";
        const answer = inner.management.read(query);
        reading = false;
        return answer;
      };
      return { ...inner, management: { ...inner.management, read } };
    },
  },

  // Deletion
  keys("deletes nothing", (inner) => ({ delete: async (id) => ((await inner.delete(id)) ? [] : undefined) })),
  keys("answers to every deletion", (inner) => ({ delete: async (id) => (await inner.delete(id)) ?? [] })),
  keys("deletes by digest too", (inner) => ({
    async delete(id) {
      const key = await inner.findByDigest(id);
      return inner.delete(key?.id ?? id);
    },
  })),
  keys("leaves the secret of a deleted key", (inner) => {
    const seen = new Map<string, Key>();
    return {
      async findByDigest(digest) {
        const key = (await inner.findByDigest(digest)) ?? seen.get(digest);
        if (key !== undefined) seen.set(digest, key);
        return key;
      },
    };
  }),
  keys("leaves the counter of a deleted key", (inner) => {
    const created = new Map<string, NewKey>();
    return {
      create(key, record) {
        created.set(key.id, key);
        return inner.create(key, record);
      },
      async delete(id) {
        const digests = await inner.delete(id);
        const key = digests && created.get(id);
        if (key !== undefined) await inner.create({ ...key, secretDigest: `no longer ${key.secretDigest}` });
        return digests;
      },
    };
  }),
  keys("tells every caller of concurrent deletions that it deleted the key", (inner) => {
    const underWay = new Map<string, ReturnType<KeyCalls["delete"]>>();
    return { delete: (id) => shared(underWay, id, () => inner.delete(id)) };
  }),
  keys("deletes all keys of the owner", (inner) => {
    const known: NewKey[] = [];
    return {
      create(key, record) {
        known.push(key);
        return inner.create(key, record);
      },
      async delete(id) {
        const owner = known.find((key) => key.id === id)?.ownerId;
        const also = known.filter((key) => key.id !== id && owner !== undefined && key.ownerId === owner);
        for (const key of also) await inner.delete(key.id);
        return inner.delete(id);
      },
    };
  }),

  // Idempotency
  keys("ignores idempotency", (inner) => ({ create: (key) => inner.create(key) })),
  keys("stores the key of a repeated create", (inner) => ({
    async create(key, record) {
      const outcome = await inner.create(key, record);
      if (outcome.outcome === "repeated") await inner.create(key);
      return outcome;
    },
  })),
  keys("answers a repeated create with its own record", (inner) => ({
    async create(key, record) {
      const outcome = await inner.create(key, record);
      return record && outcome.outcome === "repeated" ? { outcome: "repeated", record } : outcome;
    },
  })),
  records("keeps records for ever", (record) => ({ ...record, expiresAtMs: Number.MAX_SAFE_INTEGER })),
  records("drops records a millisecond early", (record) => ({ ...record, expiresAtMs: record.expiresAtMs - 1 })),
  records("takes all records for one", (record) => ({ ...record, lookup: "" })),
  keys("looks for the record before it stores it", (inner) => {
    const kept = new Map<string, IdempotencyRecord>();
    return {
      async create(key, record) {
        const found = record && kept.get(record.lookup);
        await Promise.resolve();
        if (found !== undefined && found.expiresAtMs > key.createdAtMs) return { outcome: "repeated", record: found };
        if (record !== undefined) kept.set(record.lookup, record);
        return inner.create(key);
      },
    };
  }),
  keys("finds no kept answer", () => ({ findKeptAnswer: async () => undefined })),
  keys("finds kept answers a millisecond too long", (inner) => ({
    findKeptAnswer: (lookup, nowMs) => inner.findKeptAnswer(lookup, nowMs - 1),
  })),
  tidies("never tidies", () => async () => {}),
  tidies("tidies a millisecond too much", (inner) => (nowMs) => inner(nowMs + 1)),
];
