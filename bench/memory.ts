import { systemClock } from "../src/ambient/clock.ts";
import { sha256 } from "../src/ambient/crypto.ts";
import { createMetrics } from "../src/ambient/metrics.ts";
import type { RateLimit } from "../src/domain/rate-limit.ts";
import { WaitingRoom } from "../src/domain/waiting-room.ts";
import { WindowTable } from "../src/domain/window-table.ts";
import { LocalLimiter } from "../src/ratelimit/local/local-limiter.ts";
import { CachedKeyLookup } from "../src/store/cached-key-lookup.ts";
import type { KeyLookup } from "../src/store/key-lookup.ts";

const ambient = { clock: systemClock, metrics: createMetrics() };

/** Bytes that each open window of a local limit takes, the key's id included. Needs `--expose-gc`, as the next one does. */
export async function bytesPerWindow(windows: number): Promise<number> {
  const rule: RateLimit = { mode: "local", limit: 10, durationMs: 60_000 };
  return (
    (await heldBy(() => {
      const table = new WindowTable(windows);
      const limiter = new LocalLimiter(table, ambient);
      // One API may hold nine tenths of a table.
      const apiIdOf = (i: number) => (i < 0.9 * windows ? "api" : "other");
      for (let i = 0; i < windows; i++) limiter.take(idOf(i), rule, 1, apiIdOf(i)).commit();
      return table;
    })) / windows
  );
}

/** Bytes that each key in the cache takes, with these keys in the store. */
export async function bytesPerCachedKey(store: KeyLookup, keys: readonly string[]): Promise<number> {
  const options = {
    ttlMs: 86_400_000,
    keysMax: keys.length,
    waitingRoom: new WaitingRoom(64),
  };
  return (
    (await heldBy(async () => {
      const cache = new CachedKeyLookup(store, options, ambient);
      for (const key of keys) await cache.findByDigest(sha256(key));
      return cache;
    })) / keys.length
  );
}

/** Made from bytes, as ids that come from a database are: in one piece. */
export function idOf(n: number): string {
  return Buffer.from(`key_${n.toString(36).padStart(22, "0")}`).toString("latin1");
}

async function heldBy(fill: () => { size: number } | Promise<{ size: number }>): Promise<number> {
  const before = heldBytes();
  const filled = await fill();
  const bytes = heldBytes() - before;
  // Used after it was weighed, so that nothing of it was collected before.
  if (filled.size === 0) throw new Error("nothing was filled");
  return bytes;
}

function heldBytes(): number {
  if (globalThis.gc === undefined) throw new Error("start Node with --expose-gc");
  // Twice: what the first finds is freed in the background, and the second waits for that.
  globalThis.gc();
  globalThis.gc();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}
