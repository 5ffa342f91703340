import type { Ambient } from "../ambient/ambient.ts";
import type { Settings } from "../config/settings.ts";
import type { WaitingRoom } from "../domain/waiting-room.ts";
import { broadcastChanges } from "../store/broadcasting-key-store.ts";
import { CachedKeyStore } from "../store/cached-key-store.ts";
import type { KeyStore } from "../store/key-store.ts";
import type { ServingThreadPool } from "./serving-thread-pool.ts";

interface KeyCacheDeps extends Pick<Ambient, "clock" | "metrics"> {
  readonly settings: Pick<Settings, "cacheTtlMs" | "cacheKeysMax">;
  readonly waitingRoom: WaitingRoom;
}

/** Caches keys in this thread; not if there are serving threads, which have their own caches and hear of every change. */
export function cacheKeys(
  keys: KeyStore,
  threads: ServingThreadPool | undefined,
  { settings, waitingRoom, ...ambient }: KeyCacheDeps,
): { readonly keys: KeyStore; readonly memory: ServingThreadPool | CachedKeyStore } {
  if (threads !== undefined) return { keys: broadcastChanges(keys, threads), memory: threads };
  const { cacheTtlMs: ttlMs, cacheKeysMax: keysMax } = settings;
  const cached = new CachedKeyStore(keys, { ttlMs, keysMax, waitingRoom }, ambient);
  ambient.metrics.gauge("latchkey_cached_keys", "Keys held in memory.", () => cached.size);
  return { keys: cached, memory: cached };
}
