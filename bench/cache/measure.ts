// One measurement in a process of its own, so that no other has shaped its heap: `node --expose-gc measure.ts <what> …`.
// Prints JSON.
import { setImmediate as nextTurn } from "node:timers/promises";
import { getHeapStatistics } from "node:v8";
import { allocatedPerVerification } from "./allocations.ts";
import { type Cache, type CacheName, caches } from "./caches.ts";
import { digestOf, type Kind, storeOf } from "./key-rows.ts";

const [what = "", ...args] = process.argv.slice(2);
const measures: Record<string, () => Promise<unknown>> = {
  bytes: () => bytesPerKey(args[0] as CacheName, args[1] as Kind),
  pauses: () => pauses(args[0] as CacheName),
  hit: () => nanosPerHit(args[0] as CacheName, Number(args[1])),
  allocations: allocatedPerVerification,
};
console.log(JSON.stringify(await measures[what]?.()));

async function bytesPerKey(name: CacheName, kind: Kind): Promise<number> {
  const cache = caches[name](storeOf(kind));
  await fill(cache, 0, 1000);
  const before = heapBytes();
  await fill(cache, 1000, 1_000_000);
  return Math.round((heapBytes() - before) / 999_000);
}

function heapBytes(): number {
  globalThis.gc?.();
  return getHeapStatistics().used_heap_size;
}

/** The longest turns of the event loop while a million keys come in, and what it takes to forget. */
async function pauses(name: CacheName): Promise<Record<string, number>> {
  const cache = caches[name](storeOf("nothing else"));
  const turns = (await fill(cache, 0, 1_000_000)).toSorted((a, b) => b - a);
  return {
    "longest turn while they come in": turns[0] as number,
    "turns of more than 10 ms": turns.filter((ms) => ms > 10).length,
    "forgetting a key by its id": msOf(() => cache.forgetKey("key of nobody")),
    "forgetting all": msOf(() => cache.forgetAll()),
  };
}

async function nanosPerHit(name: CacheName, keys: number): Promise<number> {
  const cache = caches[name](storeOf("nothing else"));
  await fill(cache, 0, keys);
  // A new string for each hit, like a real digest: a string that was used before has its hash cached.
  const digests = Buffer.from(Array.from({ length: keys }, (_, n) => digestOf(n)).join(""), "latin1");
  const pass = (use: (digest: string) => unknown) =>
    cpuMsOf(() => {
      for (let i = 0, n = 0; i < 1_000_000; i++, n = (n + 7919) % keys)
        use(digests.toString("latin1", 43 * n, 43 * n + 43));
    });
  const passes = Array.from({ length: 7 }, () => pass((digest) => cache.findByDigest(digest)) - pass(() => {}));
  return passes.toSorted((a, b) => a - b)[3] as number;
}

/** 50 look-ups in each turn of the event loop; answers how long each turn was. */
async function fill(cache: Cache, from: number, to: number): Promise<number[]> {
  const turns: number[] = [];
  for (let n = from; n < to; n += 50) {
    const startMs = cpuMs();
    await Promise.all(Array.from({ length: Math.min(50, to - n) }, (_, i) => cache.findByDigest(digestOf(n + i))));
    turns.push(cpuMs() - startMs);
    await nextTurn();
  }
  return turns;
}

function msOf(work: () => void): number {
  const startMs = performance.now();
  work();
  return performance.now() - startMs;
}

function cpuMsOf(work: () => void): number {
  const startMs = cpuMs();
  work();
  return cpuMs() - startMs;
}

/** Processor time of this thread: it includes garbage collection, but not other work of the machine. */
function cpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
