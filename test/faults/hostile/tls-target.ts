// The internal listener over TLS in a process of its own, with little patience, for a test to be hostile to. Run by fork,
// with --expose-gc, the two files of its certificate and its secret; says where it listens, and what state it is in when it is asked.

import { readFileSync } from "node:fs";
import { systemClock } from "../../../src/ambient/clock.ts";
import { createLog } from "../../../src/ambient/log.ts";
import { createMetrics } from "../../../src/ambient/metrics.ts";
import { createSystemRandom } from "../../../src/ambient/random.ts";
import { Secret } from "../../../src/domain/secret.ts";
import { startInternalListener } from "../../../src/server/internal-listener.ts";
import { sumMetric } from "../../support/read-metric.ts";

export interface TlsTargetState {
  readonly connections: number;
  readonly rssBytes: number;
  readonly heapBytes: number;
  readonly servingFailures: number;
  /** Log lines of level warn or error, and warnings of Node's. */
  readonly complaints: readonly string[];
}

const [certFile = "", keyFile = "", secret = ""] = process.argv.slice(2);
const complaints: string[] = [];
process.on("warning", (warning) => complaints.push(String(warning)));
const metrics = createMetrics();
const { port } = await startInternalListener({
  clock: systemClock,
  random: createSystemRandom(),
  log: createLog("warn", (line) => complaints.push(line)),
  metrics,
  host: "127.0.0.1",
  port: 0,
  access: {
    secrets: [new Secret(secret)],
    tls: {
      cert: readFileSync(certFile, "utf8"),
      key: new Secret(readFileSync(keyFile, "utf8")),
      versionMin: "TLSv1.3",
    },
  },
  timeouts: {
    firstBytesMs: 500,
    headersMs: 500,
    requestMs: 2 ** 31 - 1,
    answerMs: 2000,
    keepAliveMs: 2000,
    idleMs: 600_000,
  },
  // An edge's stream, which stays open.
  services: new Map([["/stream", async (_, res) => void res.writeHead(200).write("open")]]),
});
process.on("message", async () => {
  globalThis.gc?.();
  const { rss, heapUsed } = process.memoryUsage();
  const text = await metrics.render();
  const state: TlsTargetState = {
    connections: process.getActiveResourcesInfo().filter((kind) => kind === "TCPSocketWrap").length,
    rssBytes: rss,
    heapBytes: heapUsed,
    servingFailures: sumMetric(text, "latchkey_serving_failures_total"),
    complaints,
  };
  process.send?.({ state });
});
process.on("disconnect", () => process.exit());
process.send?.({ port });
