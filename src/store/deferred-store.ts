import { Unavailable } from "../domain/unavailable.ts";
import type { Store } from "./store.ts";

/** A store that is not there yet: everything asked of it is `Unavailable` until the real one takes its place. */
export function createDeferredStore(lanes: number): { store: Store; fulfil: (real: Store) => void } {
  let fulfilled: Store | undefined;
  const real = (): Store => {
    if (fulfilled === undefined) throw notThere();
    return fulfilled;
  };
  // Async functions, so that what `real` throws is a rejection like any other.
  const store: Store = {
    keys: {
      // Not async: callers that share a look-up know it by its promise.
      findByDigest: (...args) =>
        fulfilled === undefined ? Promise.reject(notThere()) : fulfilled.keys.findByDigest(...args),
      findOwner: (ownerId) =>
        fulfilled === undefined ? Promise.reject(notThere()) : fulfilled.keys.findOwner(ownerId),
    },
    management: {
      change: async (...args) => real().management.change(...args),
      read: async (query) => real().management.read(query),
    },
    rootKeys: {
      findByDigest: async (digest) => real().rootKeys.findByDigest(digest),
      presence: async (nowMs) => real().rootKeys.presence(nowMs),
      announceChange: async () => real().rootKeys.announceChange(),
      retireGenerated: async (...args) => real().rootKeys.retireGenerated(...args),
      addFirst: async (...args) => real().rootKeys.addFirst(...args),
    },
    changes: { read: async (since) => real().changes.read(since) },
    usageLanes: Array.from({ length: lanes }, (_, lane) => ({
      settle: async (charges) => real().usageLanes[lane]?.settle(charges) ?? [],
    })),
    permitLanes: Array.from({ length: lanes }, (_, lane) => ({
      exchange: async (asks) => real().permitLanes[lane]?.exchange(asks) ?? [],
    })),
    roundTripMs: () => fulfilled?.roundTripMs?.() ?? 0,
    tidy: async (...args) => real().tidy(...args),
    close: async () => fulfilled?.close(),
  };
  return {
    store,
    fulfil(opened) {
      fulfilled = opened;
    },
  };
}

function notThere(): Unavailable {
  return new Unavailable("the store is not there yet", { nothingDone: true });
}
