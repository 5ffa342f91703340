// The whole public API in a process of its own, with little patience, for a test to be hostile to. Run by fork, with
// --expose-gc; says where it listens, and what state it is in whenever it is asked.

import { systemClock } from "../../../src/ambient/clock.ts";
import { createLog } from "../../../src/ambient/log.ts";
import { createMetrics } from "../../../src/ambient/metrics.ts";
import { createSystemRandom } from "../../../src/ambient/random.ts";
import { WaitingRoom } from "../../../src/domain/waiting-room.ts";
import { WindowTable } from "../../../src/domain/window-table.ts";
import { LocalLimiter } from "../../../src/ratelimit/local/local-limiter.ts";
import type { Patience } from "../../../src/server/port/connections.ts";
import { createPublicApi } from "../../../src/server/public-api.ts";
import { CoalescingUsageLedger } from "../../../src/store/coalescing-usage-ledger.ts";
import { breakKeyStore } from "../../hostile/attack/broken-key-store.ts";
import { createMemoryStore } from "../../support/memory-store.ts";
import { testRootKey } from "./test-root-key.ts";

export type FromTarget = { port: number } | { state: TargetState };

export interface TargetState {
  readonly connections: number;
  readonly rssBytes: number;
  readonly heapBytes: number;
  /** Calls of any method that came to an end. */
  readonly calls: number;
  readonly servingFailures: number;
  /** Log lines of level warn or error, and warnings of Node's. */
  readonly complaints: readonly string[];
}

const patience: Patience = {
  firstBytesMs: 500,
  headersMs: 500,
  requestMs: 1000,
  answerMs: 2000,
  keepAliveMs: 2000,
  idleMs: 3000,
};

const complaints: string[] = [];
process.on("warning", (warning) => complaints.push(String(warning)));
const log = createLog("warn", (line) => complaints.push(line));
const metrics = createMetrics();
const store = createMemoryStore(systemClock);
const { onePort, setReady } = createPublicApi({
  keys: process.argv.includes("broken") ? breakKeyStore(store.keys) : store.keys,
  usage: new CoalescingUsageLedger(store.usageLanes, { clock: systemClock, metrics, room: new WaitingRoom(10_000) }),
  limiter: new LocalLimiter(new WindowTable(1), { clock: systemClock, metrics }),
  isRootKey: (presented) => presented.reveal() === testRootKey,
  clock: systemClock,
  random: createSystemRandom(),
  log,
  metrics,
  patience,
  fastPath: true,
  cacheKeysMax: 1000,
  connectionsMax: 20_000,
});

const tell = (message: FromTarget) => process.send?.(message);
process.on("message", async () => {
  globalThis.gc?.();
  const { rss, heapUsed } = process.memoryUsage();
  const text = await metrics.render();
  const sum = (name: string) =>
    [...text.matchAll(new RegExp(`^${name}(?:\\{.*\\})? (\\d+)$`, "gm"))].reduce(
      (total, [, count]) => total + Number(count),
      0,
    );
  tell({
    state: {
      connections: onePort.connections,
      rssBytes: rss,
      heapBytes: heapUsed,
      calls: sum("latchkey_call_seconds_count"),
      servingFailures: sum("latchkey_serving_failures_total"),
      complaints,
    },
  });
});
process.on("disconnect", () => process.exit());
tell({ port: await onePort.listen(0, "127.0.0.1") });
setReady(true);
