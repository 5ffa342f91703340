import type { Clock } from "../../src/ambient/clock.ts";
import { createMetrics } from "../../src/ambient/metrics.ts";
import { unlimitedRootKey } from "../../src/domain/root-key.ts";
import { WaitingRoom } from "../../src/domain/waiting-room.ts";
import { announceChanges } from "../../src/store/announce-changes.ts";
import { CachedKeyLookup } from "../../src/store/cached-key-lookup.ts";
import { audienceOf } from "../../src/store/changes.ts";
import { createDeferredStore } from "../../src/store/deferred-store.ts";
import { guardStore } from "../../src/store/guard-store.ts";
import type { KeyLookup } from "../../src/store/key-lookup.ts";
import type { Store } from "../../src/store/store.ts";
import { managementWithin } from "../../src/usecases/management-within.ts";

/**
 * A store as fronts use it: behind guard, deferred store, cache, announcements and what a root key allows. Those only
 * forward, so that it keeps the same contract. The cache remembers nothing: it may show an older balance.
 */
export function createLayeredStore(real: Store, clock: Clock): Store {
  const { store, fulfil } = createDeferredStore(real.usageLanes.length);
  fulfil(guardStore(real, { problem: undefined, doubt: undefined, refresh: async () => {}, onChange() {} }));
  const bounds = { ttlMs: 0, keysMax: 100, waitingRoom: new WaitingRoom(1000) };
  const cache = new CachedKeyLookup(store.keys, bounds, { clock, metrics: createMetrics() });
  const announced = announceChanges(store.management, [audienceOf(cache)]);
  const keys = {
    findByDigest: (...args: Parameters<KeyLookup["findByDigest"]>) => cache.findByDigest(...args),
    findOwner: (ownerId: string) => store.keys.findOwner(ownerId),
  };
  return { ...store, keys, management: managementWithin(announced, unlimitedRootKey("root_test")) };
}
