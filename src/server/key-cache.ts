import type { Ambient } from "../ambient/ambient.ts";
import type { Settings } from "../config/settings.ts";
import type { WaitingRoom } from "../domain/waiting-room.ts";
import { CachedKeyLookup } from "../store/cached-key-lookup.ts";
import { audienceOf, type ChangeAudience, type ChangeCache } from "../store/changes.ts";
import type { KeyLookup } from "../store/key-lookup.ts";
import type { ServingThreadPool } from "./serving-thread-pool.ts";

interface KeyCacheDeps extends Pick<Ambient, "clock" | "metrics"> {
  readonly settings: Pick<Settings, "cacheTtlMs" | "cacheKeysMax">;
  readonly waitingRoom: WaitingRoom;
}

/**
 * Caches look-ups in this thread; not if there are serving threads, which have their own caches and hear of every change.
 * `changes` tells all caches of this process of a change that is made in it.
 */
export function cacheKeys(
  keys: KeyLookup,
  threads: ServingThreadPool | undefined,
  { settings, waitingRoom, ...ambient }: KeyCacheDeps,
): { readonly keys: KeyLookup; readonly memory: ChangeCache; readonly changes: ChangeAudience } {
  if (threads !== undefined) return { keys, memory: threads, changes: threads };
  const { cacheTtlMs: ttlMs, cacheKeysMax: keysMax } = settings;
  const cached = new CachedKeyLookup(keys, { ttlMs, keysMax, waitingRoom }, ambient);
  ambient.metrics.gauge("latchkey_cached_keys", "Keys held in memory.", () => cached.size);
  return { keys: cached, memory: cached, changes: audienceOf(cached) };
}
