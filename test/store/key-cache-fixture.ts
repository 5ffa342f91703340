import { createMetrics } from "../../src/ambient/metrics.ts";
import type { Key } from "../../src/domain/key.ts";
import { WaitingRoom } from "../../src/domain/waiting-room.ts";
import { announceChanges } from "../../src/store/announce-changes.ts";
import { CachedKeyLookup, type KeyCacheOptions } from "../../src/store/cached-key-lookup.ts";
import { nextTurn } from "../batching/next-turn.ts";
import { TestClock } from "../support/test-clock.ts";
import { HeldKeyStore } from "./held-key-store.ts";

/** A cache on a store that answers when told to, and the same store with its changes announced to the cache. News is current as of the beginning, unless there is none. */
export function setUp(options: Partial<KeyCacheOptions> = {}, isNewsThere = true) {
  const store = new HeldKeyStore();
  const clock = new TestClock();
  const events: string[] = [];
  const metrics = { ...createMetrics(), keyCache: (event: string) => void events.push(event) };
  const waitingRoom = new WaitingRoom(100_000);
  const bounds = { ttlMs: 1000, keysMax: 100, waitingRoom, ...options };
  const cache = new CachedKeyLookup(store, bounds, { clock, metrics });
  if (isNewsThere) cache.newsIsCurrent(clock.monotonicMs());
  const keys = announceChanges(store, [{ broadcast: async (change) => cache.invalidate(change) }]);
  return { store, clock, events, waitingRoom: bounds.waitingRoom, cache, keys };
}

export const strict = { mode: "strict", limit: 10, durationMs: 1000 } as const;

/** Looks the key up and lets the store answer, if it is asked. */
export async function find({ store, cache }: ReturnType<typeof setUp>, digest: string): Promise<Key | undefined> {
  const found = cache.findByDigest(digest);
  await nextTurn();
  store.answerAll();
  return found;
}

export async function answerUntilIdle(store: HeldKeyStore): Promise<void> {
  await nextTurn();
  while (store.underWay > 0) {
    store.answerAll();
    await nextTurn();
  }
}
