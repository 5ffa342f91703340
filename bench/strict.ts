// How long a verification under a strict limit waits, and what it costs the ledger: three regions, each a process of its
// own behind a link of 1, 40 or 80 ms, beside one statement per request and beside rate-limiter-flexible, all in one run
// over links of the same length. `npm run bench:strict`; takes about three and a half minutes, prints tables.
import { type ChildProcess, fork, spawn } from "node:child_process";
import { once } from "node:events";
import net from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { systemClock } from "../src/ambient/clock.ts";
import { createMetrics } from "../src/ambient/metrics.ts";
import { createSystemRandom } from "../src/ambient/random.ts";
import { openPostgresStore } from "../src/store/postgres/open-postgres-store.ts";
import type { Store } from "../src/store/store.ts";
import { createKey } from "../src/usecases/create-key.ts";
import { plainKey } from "../test/support/plain-key.ts";
import { PostgresServer } from "../test/support/postgres-server.ts";
import { readMetric } from "../test/support/read-metric.ts";
import { RedisServer } from "../test/support/redis-server.ts";
import { builtProgram } from "./contestants/latchkey.ts";
import { DelayedLink } from "./delayed-link.ts";
import {
  benchInternalSecret,
  type ContestantName,
  contestantNames,
  type RegionLinks,
  type Rule,
} from "./strict-contestants.ts";
import type { Order, RegionReport } from "./strict-region.ts";

const roundTripsMs = [1, 40, 80];

/** So long that every window begun has had more than the time it takes to fill. */
const loads = [
  { name: "10 000 in 60 s at 3 000 a second", rule: { limit: 10_000, durationMs: 60_000 }, perSecond: 3000, ms: 5000 },
  // As many as two cores can send one by one to Postgres, on one row, and still keep up.
  { name: "2 000 in 60 s at 600 a second", rule: { limit: 2000, durationMs: 60_000 }, perSecond: 600, ms: 5000 },
  { name: "1 000 in 10 s at 300 a second", rule: { limit: 1000, durationMs: 10_000 }, perSecond: 300, ms: 15_000 },
  { name: "100 in 1 s at 300 a second", rule: { limit: 100, durationMs: 1000 }, perSecond: 300, ms: 8800 },
  { name: "20 in 10 s at 30 a second", rule: { limit: 20, durationMs: 10_000 }, perSecond: 30, ms: 11_500 },
];
const titles: Record<ContestantName, string> = {
  latchkey: "Latchkey, strict",
  oneByOne: "one UPDATE per request",
  flexiblePostgres: "rate-limiter-flexible, Postgres",
  flexibleRedis: "rate-limiter-flexible, Redis",
};
const random = createSystemRandom();
const undo: (() => unknown)[] = [];

try {
  await main();
} finally {
  for (const step of undo.reverse()) await step();
}
process.exit(0);

async function main(): Promise<void> {
  const postgres = await PostgresServer.start({ max_connections: "500" });
  undo.push(() => postgres.remove());
  const redis = await RedisServer.start();
  undo.push(() => redis.remove());
  const databaseUrl = await postgres.createDatabase();
  const ambient = { clock: systemClock, random, metrics: createMetrics() };
  const store = await openPostgresStore({
    ...ambient,
    url: databaseUrl,
    connectionsMax: 2,
    lanes: 1,
    usageTimeoutMs: 5000,
  });
  undo.push(() => store.close());
  const database = new URL(databaseUrl).pathname.slice(1);
  await postgres.query("CREATE TABLE plain_windows (key text PRIMARY KEY, ends_at bigint, used int)", database);
  await postgres.query(
    "CREATE TABLE flexible_windows (key varchar(255) PRIMARY KEY, points int NOT NULL DEFAULT 0, expire bigint)",
    database,
  );
  const coordinatorPort = await startCoordinator(databaseUrl);
  const regions: ChildProcess[] = [];
  for (const roundTripMs of roundTripsMs) {
    const linkTo = async (port: number) => (await DelayedLink.start(port, roundTripMs)).port;
    regions.push(
      await startRegion({
        coordinatorPort: await linkTo(coordinatorPort),
        databaseUrl: postgres.url(database, await linkTo(postgres.port)),
        redisPort: await linkTo(redis.port),
      }),
    );
  }

  const newKey = async (name: ContestantName, rule: Rule): Promise<string> => {
    const key =
      name === "latchkey" ? await strictKey(store, rule) : `key_${Buffer.from(random.bytes(9)).toString("hex")}`;
    await postgres.query(`INSERT INTO plain_windows VALUES ('${key}', 0, 0)`, database);
    return key;
  };
  const run = async (name: ContestantName, load: Omit<(typeof loads)[number], "name">) => {
    const key = await newKey(name, load.rule);
    const before = await readMetric(coordinatorPort, "latchkey_batch_items_count");
    const order = { contestant: name, key, rule: load.rule, perSecond: load.perSecond / regions.length, ms: load.ms };
    const reports = await Promise.all(regions.map((region, i) => tell(region, { ...order, seed: i + 1 })));
    const statements = (await readMetric(coordinatorPort, "latchkey_batch_items_count")) - before;
    return row(name, reports, statements, load);
  };

  for (const name of contestantNames) {
    await run(name, { rule: { limit: 1000, durationMs: 1000 }, perSecond: 600, ms: 1000 });
  }
  const measured = await Promise.all(roundTripsMs.map(measureRoundTrip));
  console.log(`Round trips of the links, measured: ${measured.map((ms) => ms.toFixed(1)).join(", ")} ms.`);
  for (const load of loads) {
    console.log(
      `\n| ${load.name} | mean wait | p99 | mean at ${roundTripsMs.join(" / ")} ms | statements per admitted |` +
        " messages per admitted | admitted per window | decided per second |\n|---|---|---|---|---|---|---|---|",
    );
    for (const name of contestantNames) console.log(await run(name, load));
  }
}

/** One line of the table. */
function row(
  name: ContestantName,
  reports: readonly RegionReport[],
  coordinatorStatements: number,
  { rule, ms }: { rule: Rule; ms: number },
): string {
  const waits = reports.flatMap((report) => report.waits).sort((a, b) => a - b);
  const admitted = waits.length;
  const sent = sum(reports.map((report) => report.sent));
  const statements = name === "latchkey" ? coordinatorStatements : sent;
  const failed = sum(reports.map((report) => report.failed));
  if (failed > 0) console.error(`${titles[name]}: ${failed} could not be decided`);
  const tookMs = Math.max(ms, ...reports.map((report) => report.tookMs));
  const cells = [
    titles[name],
    `${mean(waits).toFixed(2)} ms`,
    `${(waits[Math.floor(admitted * 0.99)] ?? 0).toFixed(1)} ms`,
    reports.map((report) => mean(report.waits).toFixed(1)).join(" / "),
    (statements / admitted).toFixed(3),
    (sent / admitted).toFixed(3),
    describeWindows(reports, rule),
    Math.round((sum(reports.map((report) => report.verified)) * 1000) / tookMs),
  ];
  return `| ${cells.join(" | ")} |`;
}

/** How many were admitted in each window: those whose ends lie together are one, as regions tell the time apart. */
function describeWindows(reports: readonly RegionReport[], { durationMs }: Rule): string {
  const ends = reports.flatMap((report) => report.windows).sort(([a], [b]) => a - b);
  const counts: number[] = [];
  let endsAtMs = Number.NEGATIVE_INFINITY;
  for (const [endMs, admitted] of ends) {
    if (endMs - endsAtMs > durationMs / 2) counts.push(0);
    endsAtMs = endMs;
    counts.push((counts.pop() ?? 0) + admitted);
  }
  const [least, most] = [Math.min(...counts), Math.max(...counts)];
  return `${least === most ? least : `${least}–${most}`} (${counts.length})`;
}

/** The real program, next to Postgres. Answers the port of its internal listener. */
async function startCoordinator(databaseUrl: string): Promise<number> {
  const ports = { PORT: "0", LATCHKEY_INTERNAL_PORT: "0" };
  const secrets = { DATABASE_URL: databaseUrl, LATCHKEY_INTERNAL_SECRET: benchInternalSecret };
  const env = { PATH: process.env.PATH, ...ports, ...secrets };
  const child = spawn(process.execPath, [await builtProgram(), "serve", "--role", "coordinator"], {
    env,
    stdio: ["ignore", "ignore", "pipe"],
  });
  undo.push(() => child.kill());
  for await (const line of createInterface({ input: child.stderr })) {
    const said = JSON.parse(line) as { msg: string; internalPort: number };
    if (said.msg === "serving") return said.internalPort;
  }
  throw new Error("the coordinator did not start");
}

async function startRegion(links: RegionLinks): Promise<ChildProcess> {
  const region = fork(join(import.meta.dirname, "strict-region.ts"));
  undo.push(() => region.kill());
  region.send({ links });
  await once(region, "message");
  return region;
}

async function tell(region: ChildProcess, order: Order): Promise<RegionReport> {
  region.send(order);
  const [report] = (await once(region, "message")) as [RegionReport];
  return report;
}

async function strictKey(store: Store, { limit, durationMs }: Rule): Promise<string> {
  const rateLimit = { mode: "strict", limit, durationMs } as const;
  const made = { prefix: undefined, byteLength: undefined, useDefaults: false, apiId: "bench" };
  const request = { ...plainKey, ...made, rateLimit };
  return (await createKey(store.management, request, undefined, { clock: systemClock, random })).keyId;
}

/** The real round trip of a link of that length: timers are late. */
async function measureRoundTrip(roundTripMs: number): Promise<number> {
  const echo = net.createServer((socket) => socket.pipe(socket)).listen(0, "127.0.0.1");
  await once(echo, "listening");
  const link = await DelayedLink.start((echo.address() as net.AddressInfo).port, roundTripMs);
  const socket = net.connect({ host: "127.0.0.1", port: link.port, noDelay: true });
  const tookMs: number[] = [];
  for (let i = 0; i < 21; i++) {
    const sentMs = performance.now();
    socket.write("x");
    await once(socket, "data");
    tookMs.push(performance.now() - sentMs);
  }
  socket.destroy();
  link.close();
  echo.close();
  return tookMs.sort((a, b) => a - b)[10] as number;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}

function mean(numbers: readonly number[]): number {
  return sum(numbers) / numbers.length;
}
