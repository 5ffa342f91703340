import type { Ambient } from "../ambient/ambient.ts";
import type { Settings } from "../config/settings.ts";
import type { WaitingRoom } from "../domain/waiting-room.ts";
import { CachedKeyStore, type KeyCacheOptions } from "../store/cached-key-store.ts";
import type { KeyStore } from "../store/key-store.ts";

/** Cache misses that may query the store at the same time, and those that may queue behind them. */
const lookupsMax = 64;
export const lookupsQueuedMax = 10_000;

interface KeyCacheDeps extends Pick<Ambient, "clock" | "metrics"> {
  readonly waitingRoom: WaitingRoom;
}

/** Caches keys in this thread. */
export function cacheKeys(keys: KeyStore, settings: Settings, deps: KeyCacheDeps): CachedKeyStore {
  const cached = new CachedKeyStore(keys, optionsOf(settings, deps), deps);
  deps.metrics.gauge("latchkey_cached_keys", "Keys held in memory.", () => cached.size);
  return cached;
}

/** For serving threads, which have their own caches: only bounds the look-ups in the store, for all threads together. */
export function limitLookups(
  keys: KeyStore,
  settings: Settings,
  { clock, metrics, waitingRoom }: KeyCacheDeps,
): CachedKeyStore {
  // The threads count their own hits and misses.
  const uncounted = { ...metrics, keyCache() {} };
  return new CachedKeyStore(keys, { ...optionsOf(settings, { waitingRoom }), ttlMs: 0 }, { clock, metrics: uncounted });
}

function optionsOf(settings: Settings, { waitingRoom }: Pick<KeyCacheDeps, "waitingRoom">): KeyCacheOptions {
  return {
    ttlMs: settings.cacheTtlMs,
    keysMax: settings.cacheKeysMax,
    // As many as connections: more look-ups would wait for a connection outside this queue.
    lookupsMax: settings.databaseUrl ? settings.databaseConnectionsMax : lookupsMax,
    lookupsQueuedMax,
    waitingRoom,
  };
}
