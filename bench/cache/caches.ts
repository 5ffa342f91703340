import { systemClock } from "../../src/ambient/clock.ts";
import { createMetrics } from "../../src/ambient/metrics.ts";
import type { Key } from "../../src/domain/key.ts";
import type { MaybePromise } from "../../src/domain/maybe-promise.ts";
import { WaitingRoom } from "../../src/domain/waiting-room.ts";
import { CachedKeyLookup } from "../../src/store/cached-key-lookup.ts";
import type { KeyLookup } from "../../src/store/key-lookup.ts";

export interface Cache {
  findByDigest(digest: string): MaybePromise<Key | undefined>;
  /** Of a key whose digests are not known. */
  forgetKey(keyId: string): void;
  forgetAll(): void;
}

const ttlMs = 86_400_000;
const bounds = { ttlMs, keysMax: 2_000_000, waitingRoom: new WaitingRoom(100_000) };

/** The measured cache, and the simplest one for comparison: a Map of the store's answers and their expiry. */
export const caches = {
  "one Map": (store: KeyLookup): Cache => {
    const entries = new Map<string, { key: Key; untilMs: number }>();
    const metrics = createMetrics();
    const lookUp = async (digest: string) => {
      const key = await store.findByDigest(digest);
      if (key !== undefined) entries.set(digest, { key, untilMs: systemClock.monotonicMs() + ttlMs });
      return key;
    };
    return {
      findByDigest(digest) {
        const entry = entries.get(digest);
        if (entry === undefined || systemClock.monotonicMs() >= entry.untilMs) return lookUp(digest);
        metrics.keyCache("hit");
        return entry.key;
      },
      forgetKey(keyId) {
        for (const [digest, { key }] of entries) if (key.id === keyId) entries.delete(digest);
      },
      forgetAll: () => entries.clear(),
    };
  },
  Latchkey: (store: KeyLookup): Cache => {
    const cache = new CachedKeyLookup(store, bounds, { clock: systemClock, metrics: createMetrics() });
    cache.newsIsCurrent(systemClock.monotonicMs());
    return {
      findByDigest: (digest) => cache.findByDigest(digest),
      forgetKey: (keyId) => cache.invalidate({ kind: "key", keyId, digests: undefined }),
      forgetAll: () => cache.invalidateAll(),
    };
  },
};

export type CacheName = keyof typeof caches;
