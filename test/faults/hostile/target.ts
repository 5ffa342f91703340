// The whole public API in a process of its own, with little patience unless told otherwise, for a test to be hostile to. Run by fork, with
// --expose-gc; says where it listens, and what state it is in whenever it is asked.

import { defaultTimeouts, type Timeouts } from "../../../src/server/port/connections.ts";
import { breakKeyStore } from "../../hostile/attack/broken-key-store.ts";
import { composePublicApi } from "../../support/compose-public-api.ts";
import { sumMetric } from "../../support/read-metric.ts";

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

const impatient: Timeouts = {
  firstBytesMs: 500,
  headersMs: 500,
  requestMs: 1000,
  answerMs: 2000,
  keepAliveMs: 2000,
  idleMs: 3000,
};

const warnings: string[] = [];
process.on("warning", (warning) => warnings.push(String(warning)));
const { onePort, setReady, metrics, logLines } = composePublicApi(({ keys }) => ({
  timeouts: process.argv.includes("patient") ? defaultTimeouts : impatient,
  keys: process.argv.includes("broken") ? breakKeyStore(keys) : keys,
}));

const tell = (message: FromTarget) => process.send?.(message);
process.on("message", async () => {
  globalThis.gc?.();
  const { rss, heapUsed } = process.memoryUsage();
  const text = await metrics.render();
  tell({
    state: {
      connections: onePort.connections,
      rssBytes: rss,
      heapBytes: heapUsed,
      calls: sumMetric(text, "latchkey_call_seconds_count"),
      servingFailures: sumMetric(text, "latchkey_serving_failures_total"),
      complaints: [...warnings, ...logLines],
    },
  });
});
process.on("disconnect", () => process.exit());
tell({ port: await onePort.listen(0, "127.0.0.1") });
setReady(true);
