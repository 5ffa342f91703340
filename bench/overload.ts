// What the service does with more than it can take: the cost of turning away beside that of serving, what is still
// served under five times as many callers, and how a flooded key's neighbours fare. `npm run bench:overload`; about two
// minutes, prints tables. Servers on one core, callers on the other.
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Group, Outcome } from "./overload/callers.ts";
import { prepareLoads } from "./verify/load-programs.ts";
import { type PinnedServer, startPinned } from "./verify/pinned-servers.ts";

const rootKey = "root-key-of-the-bench-0123456789abcdef";
const folder = mkdtempSync(join(tmpdir(), "latchkey-bench-"));
const callers = startLoad("callers.ts");
const strangers = startLoad("strangers.ts");
const loads = prepareLoads(folder);
const roundMs = 3000;
const rounds = 3;

try {
  await compareCosts();
  await overload();
  await neighbours();
} finally {
  callers.kill();
  strangers.kill();
  rmSync(folder, { recursive: true });
}

/** The server's processor time, all its threads together, for each request that was answered. */
async function compareCosts(): Promise<void> {
  const costs = {
    "a counted key, served": await withServer({}, (server, keys) => cpuMicros(server, () => crowd(server, keys))),
    "a counted key, turned away": await withServer({ LATCHKEY_CALLS_MAX: "1" }, (server, keys) =>
      cpuMicros(server, () => crowd(server, keys)),
    ),
    "a connection and `/livez`, served": await withServer({}, (server) => cpuMicros(server, () => visit(server))),
    "a connection, turned away": await withServer({ LATCHKEY_CONNECTIONS_MAX: "1" }, async (server) => {
      const inside = net.connect(server.port, "127.0.0.1");
      await once(inside, "connect");
      return cpuMicros(server, () => visit(server)).finally(() => inside.destroy());
    }),
  };
  console.log("| what a request costs | CPU µs each | of which turned away | ratio |\n|---|---|---|---|");
  const [served, shed, visited, refused] = Object.entries(costs) as [Cost, Cost, Cost, Cost];
  for (const [[name, cost], [, against]] of [
    [served, served],
    [shed, served],
    [visited, visited],
    [refused, visited],
  ] as const) {
    const share = `${(cost.shedShare * 100).toFixed(1)} %`;
    console.log(`| ${name} | ${cost.micros.toFixed(1)} | ${share} | ${(cost.micros / against.micros).toFixed(2)} × |`);
  }
}

type Cost = [name: string, cost: { readonly micros: number; readonly shedShare: number }];

/** As many callers as the service serves best, five times as many with room for the former, and the former again. */
async function overload(): Promise<void> {
  console.log(
    "\n| counted keys, 1000 of them | served per second | of the peak | turned away per second | p50 ms | p99 ms |\n|---|---|---|---|---|---|",
  );
  await withServer({ LATCHKEY_CALLS_MAX: "64" }, async (server, keys) => {
    const peakLoad: Group[] = [{ connections: 64, keys, pauseMs: 0 }];
    const loads: Record<string, Group[]> = {
      "64 callers": peakLoad,
      "320 callers who come again after `Retry-After`": [{ connections: 320, keys, pauseMs: 1000 }],
      "64 callers, right after": peakLoad,
      "320 callers who come again at once": [{ connections: 320, keys, pauseMs: 0 }],
      "64 callers, right after that": peakLoad,
    };
    let peak = 0;
    for (const [name, groups] of Object.entries(loads)) {
      const [outcome] = (await call(server, groups)) as [Outcome];
      peak ||= outcome.served;
      const perSecond = (count: number) => Math.round((count * 1000) / roundMs);
      const share = `${Math.round((outcome.served / peak) * 100)} %`;
      const times = `${outcome.p50Ms.toFixed(1)} | ${outcome.p99Ms.toFixed(1)}`;
      console.log(`| ${name} | ${perSecond(outcome.served)} | ${share} | ${perSecond(outcome.shed)} | ${times} |`);
    }
  });
}

/** Eight callers of other keys, while 64 connections call one key, or as many keys as the eight do. In turns. */
async function neighbours(): Promise<void> {
  await withServer({}, async (server, keys) => {
    const others: Group = { connections: 8, keys: keys.slice(0, 500), pauseMs: 0 };
    const floods = { "one key": keys.slice(-1), "500 keys": keys.slice(500) };
    const measured: Record<string, Outcome[]> = { "one key": [], "500 keys": [] };
    for (let round = 0; round < rounds; round++) {
      for (const [name, flooded] of Object.entries(floods)) {
        const [outcome] = await call(server, [others, { connections: 64, keys: flooded, pauseMs: 0 }]);
        measured[name]?.push(outcome as Outcome);
      }
    }
    console.log("\n| 8 callers of 500 counted keys while 64 others call | p50 ms | p99 ms |\n|---|---|---|");
    for (const [name, outcomes] of Object.entries(measured)) {
      const median = (of: (outcome: Outcome) => number) =>
        outcomes.map(of).sort((a, b) => a - b)[rounds >> 1] as number;
      console.log(
        `| ${name} | ${median(({ p50Ms }) => p50Ms).toFixed(1)} | ${median(({ p99Ms }) => p99Ms).toFixed(1)} |`,
      );
    }
  });
}

async function cpuMicros(server: PinnedServer, load: () => Promise<readonly Counts[]>): Promise<Cost[1]> {
  await load();
  const before = server.cpuMs();
  const outcomes = await load();
  const micros = (server.cpuMs() - before) * 1000;
  const sum = (of: (counts: Counts) => number) => outcomes.map(of).reduce((a, b) => a + b, 0);
  const [served, shed] = [sum((counts) => counts.served), sum((counts) => counts.shed)];
  return { micros: micros / (served + shed), shedShare: shed / (served + shed) };
}

type Counts = Pick<Outcome, "served" | "shed">;

async function call({ port }: PinnedServer, groups: readonly Group[]): Promise<readonly Outcome[]> {
  return (await ask(callers, { port, groups, ms: roundMs })) as readonly Outcome[];
}

async function crowd({ port }: PinnedServer, keys: readonly string[]): Promise<readonly Counts[]> {
  const bodies = keys.map((key) => JSON.stringify({ key }));
  return [await loads.crowd(port, bodies)(roundMs)];
}

async function visit({ port }: PinnedServer): Promise<readonly Counts[]> {
  return [(await ask(strangers, { port, ms: roundMs })) as Counts];
}

async function ask(load: ChildProcess, order: object): Promise<unknown> {
  load.send(order);
  return (await once(load, "message"))[0];
}

function startLoad(script: string): ChildProcess {
  const load = fork(join(import.meta.dirname, "overload", script));
  load.on("exit", (code) => code && process.exit(code));
  return load;
}

async function withServer<Result>(
  settings: Record<string, string>,
  use: (server: PinnedServer, keys: readonly string[]) => Promise<Result>,
): Promise<Result> {
  const entry = join(import.meta.dirname, "../src/cli/latchkey.ts");
  const portOf = (line: string) => (line.includes('"msg":"serving"') ? (JSON.parse(line).port as number) : undefined);
  const server = await startPinned([entry, "serve"], portOf, {
    PORT: "0",
    LATCHKEY_INTERNAL_PORT: "0",
    LATCHKEY_DATA_DIR: mkdtempSync(join(folder, "data-")),
    LATCHKEY_ROOT_KEY: rootKey,
    LATCHKEY_CACHE_TTL_MS: "86400000",
    LATCHKEY_DRAIN_MS: "0",
    ...settings,
  });
  try {
    const keys: string[] = [];
    for (let i = 0; i < 1000; i++) keys.push(await createKey(server.port));
    return await use(server, keys);
  } finally {
    await server.stop();
  }
}

async function createKey(port: number): Promise<string> {
  const headers = { "content-type": "application/json", authorization: `Bearer ${rootKey}` };
  const body = JSON.stringify({ apiId: "bench", remaining: 2_147_483_647 });
  const response = await fetch(`http://127.0.0.1:${port}/v1/keys.createKey`, { method: "POST", headers, body });
  return ((await response.json()) as { key: string }).key;
}
