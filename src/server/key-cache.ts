import type { Ambient } from "../ambient/ambient.ts";
import { CachedKeyLookup, type KeyCacheOptions } from "../store/cached-key-lookup.ts";
import { CachedOwners } from "../store/cached-owners.ts";
import { allCaches, type ChangeCache } from "../store/changes.ts";
import type { KeyLookup, OwnerLookup, OwnersOfKeys } from "../store/key-lookup.ts";

interface KeyCacheDeps extends KeyCacheOptions, Pick<Ambient, "clock" | "metrics"> {}

export interface KeyCache {
  readonly keys: KeyLookup;
  readonly owners: OwnersOfKeys;
  /** What has to hear of changes. */
  readonly memory: ChangeCache;
}

/** Caches look-ups of keys and of their owners in this thread. */
export function cacheKeys(store: KeyLookup & OwnerLookup, deps: KeyCacheDeps): KeyCache {
  const { metrics } = deps;
  const keys = new CachedKeyLookup(store, deps, deps);
  const owners = new CachedOwners(store, deps, deps);
  metrics.gauge("latchkey_cached_keys", "Keys held in memory.", () => keys.size);
  metrics.gauge("latchkey_cached_owners", "Records of owners held in memory.", () => owners.size);
  return { keys, owners, memory: allCaches([keys, owners]) };
}
