import { MessageChannel } from "node:worker_threads";
import type { Clock } from "../../src/ambient/clock.ts";
import { createMetrics } from "../../src/ambient/metrics.ts";
import { WaitingRoom } from "../../src/domain/waiting-room.ts";
import { broadcastChanges } from "../../src/store/broadcasting-key-store.ts";
import { CachedKeyStore } from "../../src/store/cached-key-store.ts";
import { createDeferredStore } from "../../src/store/deferred-store.ts";
import { guardStore } from "../../src/store/guard-store.ts";
import type { KeyStore } from "../../src/store/key-store.ts";
import type { Store } from "../../src/store/store.ts";
import { createMainThreadMethods, type MainThread } from "../../src/threads/main-thread-methods.ts";
import type { MainThreadMethods, ServingMethods } from "../../src/threads/methods.ts";
import { type MainThreadLink, remoteKeys } from "../../src/threads/remote-main-thread.ts";
import { ThreadLink } from "../../src/threads/thread-link.ts";

/**
 * A store as a serving thread sees it: behind guard, deferred store, cache, announcements and the link between threads.
 * Those only forward, so that it keeps the same contract. The cache remembers nothing: it may show an older balance.
 */
export function createLayeredStore(real: Store, clock: Clock): Store {
  const { store, fulfil } = createDeferredStore(real.usageLanes.length);
  fulfil(guardStore(real, { problem: undefined, doubt: undefined, refresh: async () => {}, onChange() {} }));
  const bounds = { ttlMs: 0, keysMax: 100, waitingRoom: new WaitingRoom(1000) };
  const cache = new CachedKeyStore(store.keys, bounds, { clock, metrics: createMetrics() });
  const link = connect(broadcastChanges(cache, { broadcast: async () => {} }));
  return {
    ...store,
    keys: remoteKeys(link.serving),
    async close() {
      link.close();
      await store.close();
    },
  };
}

function connect(keys: KeyStore): { readonly serving: MainThreadLink; close(): void } {
  const { port1, port2 } = new MessageChannel();
  const mainThread = new ThreadLink<MainThreadMethods, ServingMethods>(
    port1,
    createMainThreadMethods({ keys } as MainThread, 1),
  );
  const serving: MainThreadLink = new ThreadLink<ServingMethods, MainThreadMethods>(port2, {} as ServingMethods);
  port1.on("message", (batch) => mainThread.onMessage(batch));
  port2.on("message", (batch) => serving.onMessage(batch));
  return { serving, close: () => port1.close() };
}
