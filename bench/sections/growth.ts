import { execFile } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import { fillStore } from "../contestants/fill-store.ts";
import { startLatchkey } from "../contestants/latchkey.ts";
import { compare } from "../harness/compare.ts";
import type { Bench, Section } from "../harness/section.ts";
import { verifyEachOnce } from "../loads/verify-each-once.ts";

const fewKeys = 1000;
/** More of them tell no more, and take longer. */
const weighedKeys = 100_000;
const idleMs = 2000;
/** V8 gives up at about 4 GB unless told otherwise. */
const compilerMs = 10_000;
const heapMbMin = 4096;
const heapBytesPerKey = 1500;

export const growth: Section<"throughput" | "idle" | "resident" | "cachedKey" | "window"> = {
  title: "Growth",
  how: "Keys without counter in random order, embedded store, 32 connections; all keys are in the cache, each having been verified once before (`LATCHKEY_CACHE_KEYS_MAX` raised). `npm run bench -- growth keys=10000000` takes more of them. A cached key and an open window are weighed in a process of their own, after garbage collection.",
  goals: {
    throughput: { what: "many cached keys, beside 1000", unit: "×", atLeast: 0.9 },
    idle: { what: "resident memory of a server just started, after 2 s", unit: "MB", atMost: 180 },
    resident: { what: "growth of resident memory per cached key, garbage included", unit: "bytes" },
    cachedKey: { what: "a cached key", unit: "bytes" },
    window: { what: "an open window of a local limit", unit: "bytes" },
  },
  async measure(bench) {
    const idle = await idleBytes(bench);
    const few = await startFilled(bench, fewKeys);
    const many = await startFilled(bench, bench.growthKeys);
    const { table, ratio } = await compare(
      "Cached keys",
      {
        few: { title: `${fewKeys} keys`, ...few },
        many: { title: `${bench.growthKeys} keys`, ...many },
      },
      bench.turns,
    );
    const { cachedKey, window } = await weigh(bench);
    const took = `${bench.growthKeys} keys were stored in ${many.storedS.toFixed(0)} s and verified once in ${many.verifiedS.toFixed(0)} s.`;
    return {
      text: [table, took],
      figures: {
        throughput: ratio("many", "few"),
        idle: idle / 2 ** 20,
        resident: many.residentBytesPerKey,
        cachedKey,
        window,
      },
    };
  },
};

async function idleBytes(bench: Bench): Promise<number> {
  const server = await startLatchkey(bench);
  await delay(idleMs);
  return server.residentBytes();
}

/** A server with so many keys in its store and in its cache, and the load on them. */
async function startFilled(bench: Bench, count: number) {
  const dataDir = mkdtempSync(join(bench.folder, "filled-"));
  const startedMs = performance.now();
  const keys = await fillStore(dataDir, count, join(bench.folder, `keys-${count}`));
  const storedMs = performance.now();
  // The same room for both: only the number of keys differs.
  const heapMb = Math.max(heapMbMin, Math.ceil((bench.growthKeys * heapBytesPerKey) / 2 ** 20));
  const server = await startLatchkey(bench, {
    nodeArgs: [`--max-old-space-size=${heapMb}`],
    environment: { LATCHKEY_DATA_DIR: dataDir, LATCHKEY_CACHE_KEYS_MAX: `${bench.growthKeys}` },
  });
  const before = server.residentBytes();
  const servingMs = performance.now();
  await verifyEachOnce(server.port, keys);
  const verifiedMs = performance.now();
  const load = bench.loads.manyKeys(server.port, keys, "random");
  // Many requests for the few too: otherwise the compiler would have had less to go by.
  if (count < bench.growthKeys) await load(compilerMs);
  return {
    server,
    load,
    storedS: (storedMs - startedMs) / 1000,
    verifiedS: (verifiedMs - servingMs) / 1000,
    residentBytesPerKey: (server.residentBytes() - before) / count,
  };
}

async function weigh(bench: Bench): Promise<{ cachedKey: number; window: number }> {
  const script = join(import.meta.dirname, "../memory-process.ts");
  const folder = mkdtempSync(join(bench.folder, "weighed-"));
  const { stdout } = await promisify(execFile)(process.execPath, ["--expose-gc", script, folder, `${weighedKeys}`]);
  return JSON.parse(stdout);
}
