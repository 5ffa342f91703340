// Decisions per second of rows that threads share, by what keeps the threads apart: nothing (one thread only), a word per
// row that is held for a moment, or a compare-and-swap on one word that is the whole window. `npm run bench:threads`; takes
// about half a minute, prints a table. See docs/adr/0008.
import { once } from "node:events";
import { performance } from "node:perf_hooks";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import type { RateLimit } from "../src/domain/rate-limit.ts";
import type { RowGuard } from "../src/domain/row-guard.ts";
import { bytesOfRows, WindowRows } from "../src/domain/window-rows.ts";
import { bytesOfGuard, SharedRowGuard } from "../src/ratelimit/local/shared-row-guard.ts";
import { inTurns, row } from "./rounds.ts";

type Kind = "plain rows" | "a held word" | "one 64-bit word";

interface Setup {
  readonly kind: Kind;
  readonly keys: number;
  readonly rows: SharedArrayBuffer;
  readonly guard: SharedArrayBuffer;
}

const rule: RateLimit = { mode: "local", limit: 2 ** 31 - 1, durationMs: 60_000 };
const burst = 1000;

if (isMainThread) await measure();
else takeWhenTold();

async function measure(): Promise<void> {
  console.log("| decisions per second | median | spread | ratio |\n|---|---|---|---|");
  for (const keys of [1, 10_000]) {
    const contestants = {
      "plain rows, 1 thread": contestant("plain rows", keys, 1),
      "a held word, 1 thread": contestant("a held word", keys, 1),
      "one 64-bit word, 1 thread": contestant("one 64-bit word", keys, 1),
      "a held word, 2 threads": contestant("a held word", keys, 2),
      "one 64-bit word, 2 threads": contestant("one 64-bit word", keys, 2),
    };
    const measured = await inTurns(contestants, { rounds: 5, roundMs: 400 });
    for (const [name, each] of Object.entries(measured)) {
      console.log(
        row(`${name}, ${keys === 1 ? "one key" : `${keys} keys`}`, each, measured["plain rows, 1 thread"], 2),
      );
    }
  }
}

function contestant(kind: Kind, keys: number, threads: number): (ms: number) => Promise<number> {
  const setup: Setup = {
    kind,
    keys,
    rows: new SharedArrayBuffer(bytesOfRows(keys)),
    guard: new SharedArrayBuffer(bytesOfGuard(keys)),
  };
  const workers = Array.from({ length: threads }, () => new Worker(new URL(import.meta.url), { workerData: setup }));
  // The bench ends when everything is measured; no thread is told to.
  for (const worker of workers) worker.unref();
  return async (ms) => {
    const counting = workers.map(async (worker) => {
      worker.postMessage(ms);
      const [taken] = (await once(worker, "message")) as [number];
      return taken;
    });
    // Without something to wait for, the process would end.
    const alive = setInterval(() => {}, 1000);
    const taken = await Promise.all(counting);
    clearInterval(alive);
    return taken.reduce((sum, each) => sum + each, 0);
  };
}

function takeWhenTold(): void {
  const { kind, keys, rows, guard } = workerData as Setup;
  const take =
    kind === "one 64-bit word"
      ? packedTake(rows)
      : rowTake(rows, kind === "plain rows" ? undefined : new SharedRowGuard(guard));
  let slot = 0;
  parentPort?.on("message", (ms: number) => {
    const untilMs = performance.now() + ms;
    let done = 0;
    for (; performance.now() < untilMs; done += burst) {
      for (let i = 0; i < burst; i++) {
        slot = (slot + 7919) % keys;
        take(slot);
      }
    }
    parentPort?.postMessage(done);
  });
}

function rowTake(memory: SharedArrayBuffer, guard: RowGuard | undefined): (slot: number) => number {
  const rows = new WindowRows(memory);
  return (slot) => {
    guard?.hold(slot, 0);
    const left = rows.take(slot, rule, performance.now());
    guard?.letGo(slot, 0);
    return left;
  };
}

/** A window as one word: when it ends in the upper 32 bits, how many have passed in the lower 32. */
function packedTake(memory: SharedArrayBuffer): (slot: number) => number {
  const words = new BigInt64Array(memory);
  const limit = rule.limit;
  return (slot) => {
    for (;;) {
      const seen = Atomics.load(words, slot);
      const nowMs = Math.floor(performance.now());
      const isOpen = nowMs < Number(seen >> 32n);
      const passed = isOpen ? Number(seen & 0xffffffffn) : 0;
      if (passed >= limit) return 0;
      const next = isOpen ? seen + 1n : (BigInt(nowMs + rule.durationMs) << 32n) | 1n;
      if (Atomics.compareExchange(words, slot, seen, next) === seen) return limit - passed;
    }
  };
}
