// Decisions per second of the local limiter beside rate-limiter-flexible's memory limiter, in the same run, and the
// memory that open windows take. `npm run bench:limiter`; takes about a minute, prints tables.
import { RateLimiterMemory } from "rate-limiter-flexible";
import { systemClock } from "../src/ambient/clock.ts";
import { createLog } from "../src/ambient/log.ts";
import { createMetrics } from "../src/ambient/metrics.ts";
import type { RateLimit } from "../src/domain/rate-limit.ts";
import { WindowTable } from "../src/domain/window-table.ts";
import { LocalLimiter } from "../src/ratelimit/local/local-limiter.ts";
import { WindowSync } from "../src/ratelimit/local/window-sync.ts";
import { bytesPerWindow, idOf } from "./memory.ts";
import { inTurns, row } from "./rounds.ts";

const turns = { rounds: 7, roundMs: 700 };
const burst = 1000;
const durationMs = 60_000;
const ambient = { clock: systemClock, metrics: createMetrics(), log: createLog("error", () => {}) };
let picked = 0;

console.log("| decisions per second | median | spread | ratio |\n|---|---|---|---|");
for (const { name, keys, limit } of [
  { name: "one key, admitted", keys: 1, limit: 2 ** 31 - 1 },
  { name: "one key, refused", keys: 1, limit: 1 },
  { name: "100000 keys, admitted", keys: 100_000, limit: 2 ** 31 - 1 },
]) {
  const ids = Array.from({ length: keys }, (_, i) => idOf(i));
  const measured = await inTurns(
    { flexible: flexible(ids, limit), alone: local(ids, limit), synced: local(ids, limit, true) },
    turns,
  );
  console.log(row(`rate-limiter-flexible, memory: ${name}`, measured.flexible, measured.flexible));
  console.log(row(`Latchkey, alone: ${name}`, measured.alone, measured.flexible));
  console.log(row(`Latchkey, told to others: ${name}`, measured.synced, measured.flexible));
}
const windows = 1_000_000;
const bytes = Math.round(await bytesPerWindow(windows));
console.log(`\n${windows} open windows: ${bytes} bytes each, the key's id included`);

function flexible(ids: readonly string[], limit: number): (ms: number) => Promise<number> {
  const limiter = new RateLimiterMemory({ points: limit, duration: durationMs / 1000 });
  return (ms) =>
    inBursts(ms, async () => {
      for (let i = 0; i < burst; i++) {
        try {
          await limiter.consume(pick(ids));
        } catch {
          // How it says no.
        }
      }
    });
}

/** With others to tell, every change is noted; telling them is left out, as it happens in the background. */
function local(ids: readonly string[], limit: number, synced = false): (ms: number) => Promise<number> {
  // One API may hold nine tenths of a table.
  const table = new WindowTable(Math.ceil(ids.length / 0.9));
  const hub = { isReachable: false, isWhole: false, exchange: () => Promise.reject(new Error("not reachable")) };
  const sync = synced ? new WindowSync({ ...ambient, table, hub, replica: "bench" }) : undefined;
  const limiter = new LocalLimiter(table, ambient, sync);
  const rule: RateLimit = { mode: "local", limit, durationMs };
  return (ms) =>
    inBursts(ms, async () => {
      for (let i = 0; i < burst; i++) {
        const permit = limiter.take(pick(ids), rule);
        if (permit.outcome === "admitted") permit.commit();
      }
    });
}

function pick(ids: readonly string[]): string {
  picked = (picked + 7919) % ids.length;
  return ids[picked] as string;
}

async function inBursts(ms: number, decide: () => Promise<void>): Promise<number> {
  const untilMs = performance.now() + ms;
  let done = 0;
  while (performance.now() < untilMs) {
    await decide();
    done += burst;
  }
  return done;
}
