// How far six replicas go beyond a local rate limit that they share, beside what was simulated before they were built.
// `npm run bench:local`; takes about five minutes, prints a table.
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import net from "node:net";
import { join } from "node:path";
import { type LoggedAnswer, latenciesOf, oddAnswers } from "../test/support/answer-log.ts";
import { buildArtefact } from "../test/support/artefact.ts";
import { type LinkedFleet, startLinkedFleet } from "../test/support/linked-fleet.ts";
import { PostgresServer } from "../test/support/postgres-server.ts";
import { rawClient } from "../test/support/raw-client.ts";
import { RedisServer } from "../test/support/redis-server.ts";
import { countSharedWindows, overshootOf, replicasOverLimit } from "../test/support/window-log.ts";

const roundTripsMs = [2, 2, 40, 40, 80, 80];
const loads = [
  { limit: 100, durationMs: 1000, perSecond: 300, windows: 30, simulated: "+26 %" },
  { limit: 1000, durationMs: 10_000, perSecond: 300, windows: 4, simulated: "–" },
  { limit: 1000, durationMs: 10_000, perSecond: 3000, windows: 6, simulated: "+15 %" },
  { limit: 10_000, durationMs: 60_000, perSecond: 3000, windows: 2, simulated: "+1.1 %" },
];
type Load = (typeof loads)[number];

const rootKey = "root-key-of-the-benchmark-0123456789";
const undo: (() => unknown)[] = [];
const atEnd = (step: () => unknown) => void undo.push(step);
try {
  atEnd(await buildArtefact());
  const postgres = await PostgresServer.start();
  atEnd(() => postgres.remove());
  const redis = await RedisServer.start();
  atEnd(() => redis.remove());
  const linked = await startLinkedFleet({
    databaseUrl: await postgres.createDatabase(),
    redis,
    roundTripsMs,
    environment: { LATCHKEY_ROOT_KEY: rootKey },
    atEnd,
  });
  const caller = fork(join(import.meta.dirname, "paced-load-process.ts"), { serialization: "advanced" });
  atEnd(() => caller.kill());

  // Not to measure how processes begin.
  await ask(caller, linked, { limit: 1000, durationMs: 1000, perSecond: 2000 }, 8000);
  const measuredMs = await Promise.all(linked.links.map(({ port }) => roundTripMs(port)));
  console.log(`Round trips to Redis, measured: ${measuredMs.map((ms) => ms.toFixed(1)).join(", ")} ms.\n`);
  console.log(
    "| limit | asked/s | answered/s | windows | most | mean | least | simulated, most | p99 |\n|---|---|---|---|---|---|---|---|---|",
  );
  for (const load of loads) console.log(await measure(load, linked, caller));
} finally {
  for (const step of undo.reverse()) await step();
}

/** Has a new key used on all replicas. */
async function ask(
  caller: ChildProcess,
  { fleet }: LinkedFleet,
  { limit, durationMs, perSecond }: Pick<Load, "limit" | "durationMs" | "perSecond">,
  ms: number,
): Promise<LoggedAnswer[]> {
  const client = rawClient({ baseUrl: fleet.replica(0).baseUrl, rootKey }).keys;
  const { key } = await client.createKey({ apiId: "bench", ratelimit: { limit, duration: durationMs } });
  caller.send({ baseUrls: fleet.baseUrls, key, perSecond, ms });
  const [log] = (await Promise.race([once(caller, "message"), once(caller, "exit")])) as [LoggedAnswer[] | null];
  if (!Array.isArray(log)) throw new Error("the caller has ended");
  return log;
}

async function measure(load: Load, linked: LinkedFleet, caller: ChildProcess): Promise<string> {
  const { limit, durationMs, perSecond, windows } = load;
  // A little longer than the windows: each opens with the first use after the one before.
  const log = await ask(caller, linked, load, windows * (durationMs + 50) + 500);

  const complete = countSharedWindows(log, load).filter(({ isComplete }) => isComplete);
  const { max, mean } = overshootOf(complete, limit);
  const least = Math.min(...complete.map(({ admitted }) => admitted));
  console.error(`${limit} in ${durationMs} ms: ${complete.map(({ admitted }) => admitted).join(", ")}`);
  const bound = linked.fleet.size * limit;
  const problems = [
    ...replicasOverLimit(log, load).map((replica) => `replica ${replica} passed the limit in a window of its own`),
    ...complete.filter(({ admitted }) => admitted > bound).map(() => "a window beyond replicas × limit"),
  ];
  if (problems.length > 0) throw new Error(`${limit} in ${durationMs} ms: ${problems.join("; ")}`);
  // A machine that is too small for the load says 503; what was counted stays true.
  for (const odd of oddAnswers(log)) console.error(`${limit} in ${durationMs} ms: ${odd}`);
  const latencies = latenciesOf(log);
  return `| ${[
    `${limit} in ${durationMs / 1000} s`,
    perSecond,
    Math.round(log.filter(({ status }) => status === 200).length / (spanMs(log) / 1000)),
    complete.length,
    percent(max),
    percent(mean),
    percent((least / limit - 1) * 100),
    load.simulated,
    `${latencies[Math.floor(latencies.length * 0.99)]?.toFixed(1)} ms`,
  ].join(" | ")} |`;
}

function spanMs(log: readonly LoggedAnswer[]): number {
  let [from, to] = [Number.POSITIVE_INFINITY, 0];
  for (const { sentMs, answeredMs } of log) [from, to] = [Math.min(from, sentMs), Math.max(to, answeredMs)];
  return to - from;
}

function percent(value: number): string {
  return `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(1)} %`;
}

/** The median of several, through the link. */
async function roundTripMs(port: number): Promise<number> {
  const socket = net.connect({ host: "127.0.0.1", port, noDelay: true });
  const tookMs: number[] = [];
  while (tookMs.length < 9) {
    const sentMs = performance.now();
    socket.write("PING\r\n");
    await once(socket, "data");
    tookMs.push(performance.now() - sentMs);
  }
  socket.destroy();
  return tookMs.sort((a, b) => a - b)[4] as number;
}
