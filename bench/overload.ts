// What the service does with more than it can take: the cost of turning away beside that of serving, what is still
// served under five times as many callers, and how a flooded key's neighbours fare. `npm run bench:overload`; about two
// minutes, prints tables; with `costs`, `overload` or `neighbours`, only that one. Servers on one core, callers on the other.
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { frameOf } from "./contestants/call-grpc.ts";
import { type Latchkey, startLatchkey, vastCounter } from "./contestants/latchkey.ts";
import { Endings } from "./harness/endings.ts";
import { type Load, prepareLoads } from "./loads/load-programs.ts";
import { writeKeyFile } from "./loads/wrk-scripts.ts";
import type { Group, Outcome } from "./overload/callers.ts";

const folder = mkdtempSync(join(tmpdir(), "latchkey-bench-"));
const callers = startLoad("callers.ts");
const strangers = startLoad("strangers.ts");
const loads = prepareLoads(folder);
const roundMs = 2000;
const rounds = 3;
const [only] = process.argv.slice(2);

try {
  const parts = { costs: compareCosts, overload, neighbours };
  for (const [name, part] of Object.entries(parts)) if (only === undefined || only === name) await part();
} finally {
  callers.kill();
  strangers.kill();
  rmSync(folder, { recursive: true });
}

/** The server's processor time, all its threads together, for each request that was answered. Both in turns, once to warm up. */
async function compareCosts(): Promise<void> {
  console.log("| what a request costs, in CPU µs | served | turned away | ratio |\n|---|---|---|---|");
  await withServer({}, (serving, keys) =>
    withServer({ LATCHKEY_CALLS_MAX: "1" }, async (full, others, dataDir) => {
      // Its one place is always taken by a call that waits for the ledger and times out: no call is served.
      const ledger = new DatabaseSync(join(dataDir, "latchkey.db"));
      await call(full, [{ connections: 1, keys: others, pauseMs: 0 }], roundMs);
      ledger.exec("BEGIN IMMEDIATE");
      await compareCost("a counted key, JSON", [serving, crowd(serving, keys)], [full, crowd(full, others)]);
      await compareCost("a counted key, gRPC", [serving, stream(serving, keys)], [full, stream(full, others)]);
      ledger.close();
    }),
  );
  await withServer({}, (serving) =>
    withServer({ LATCHKEY_CONNECTIONS_MAX: "1" }, async (full) => {
      const inside = net.connect(full.port, "127.0.0.1");
      await once(inside, "connect");
      await compareCost("a connection for one `/livez`", [serving, visit(serving)], [full, visit(full)]);
      inside.destroy();
    }),
  );
}

type Measured = readonly [server: Latchkey, load: (ms: number) => Promise<number>];

async function compareCost(name: string, ...contestants: [served: Measured, shed: Measured]): Promise<void> {
  const micros: number[][] = [[], []];
  for (let round = 0; round <= rounds; round++) {
    for (const [index, [server, load]] of contestants.entries()) {
      const before = server.cpuMs();
      const answered = await load(roundMs);
      if (round > 0) micros[index]?.push(((server.cpuMs() - before) * 1000) / answered);
    }
  }
  const [served, shed] = micros.map(medianOf) as [number, number];
  console.log(`| ${name} | ${served.toFixed(1)} | ${shed.toFixed(1)} | ${(shed / served).toFixed(2)} × |`);
}

function medianOf(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] as number;
}

/** As many callers as the service serves well, then five times as many; and right after that, the former for a second. */
async function overload(): Promise<void> {
  const titles = ["served per second", "of the peak", "turned away per second", "p50 ms", "p99 ms"];
  console.log(`\n| callers of 1000 counted keys | ${titles.join(" | ")} |\n|---|---|---|---|---|---|`);
  const run = async (server: Latchkey, name: string, group: Group, ms: number, peak?: number) => {
    const [outcome] = (await call(server, [group], ms)) as [Outcome];
    const [served, shed] = [outcome.served, outcome.shed].map((count) => Math.round((count * 1000) / ms)) as [
      number,
      number,
    ];
    const share = `${Math.round((served / (peak ?? served)) * 100)} %`;
    console.log(
      `| ${name} | ${served} | ${share} | ${shed} | ${outcome.p50Ms.toFixed(1)} | ${outcome.p99Ms.toFixed(1)} |`,
    );
    return served;
  };
  for (const [room, settings] of Object.entries({ "10000": {}, "64": { LATCHKEY_CALLS_MAX: "64" } })) {
    await withServer(settings, async (server, keys) => {
      const few = { connections: 64, keys, pauseMs: 0 };
      await call(server, [few], roundMs);
      const peak = await run(server, `64, room for ${room}`, few, roundMs);
      for (const [patience, pauseMs] of Object.entries({ "after `Retry-After`": 1000, "at once": 0 })) {
        await run(server, `320, who come again ${patience}`, { connections: 320, keys, pauseMs }, roundMs, peak);
        await run(server, "64, in the second after", few, 1000, peak);
      }
    });
  }
}

/** Eight callers of other keys, while 64 connections call one key, or as many keys as the eight do. In turns. */
async function neighbours(): Promise<void> {
  await withServer({}, async (server, keys) => {
    const others: Group = { connections: 8, keys: keys.slice(0, 500), pauseMs: 0 };
    const floods = { "one key": keys.slice(-1), "500 keys": keys.slice(500) };
    const measured: Record<string, Outcome[]> = { "one key": [], "500 keys": [] };
    for (let round = 0; round < rounds; round++) {
      for (const [name, flooded] of Object.entries(floods)) {
        const [outcome] = await call(server, [others, { connections: 64, keys: flooded, pauseMs: 0 }], roundMs);
        measured[name]?.push(outcome as Outcome);
      }
    }
    console.log("\n| 8 callers of 500 counted keys while 64 others call | p50 ms | p99 ms |\n|---|---|---|");
    for (const [name, outcomes] of Object.entries(measured)) {
      const [p50, p99] = [medianOf(outcomes.map(({ p50Ms }) => p50Ms)), medianOf(outcomes.map(({ p99Ms }) => p99Ms))];
      console.log(`| ${name} | ${p50.toFixed(1)} | ${p99.toFixed(1)} |`);
    }
  });
}

async function call({ port }: Latchkey, groups: readonly Group[], ms: number): Promise<readonly Outcome[]> {
  return (await ask(callers, { port, groups, ms })) as readonly Outcome[];
}

function crowd({ port }: Latchkey, keys: readonly string[]): Measured[1] {
  const file = writeKeyFile(join(folder, `keys-${port}`), keys);
  return counted(loads.manyKeys(port, file, "in turn", { connections: 64, countRefused: true }));
}

function stream({ port }: Latchkey, [key = ""]: readonly string[]): Measured[1] {
  return counted(loads.grpc(port, frameOf(key)));
}

function counted(load: Load): Measured[1] {
  return async (ms) => (await load(ms)).count;
}

function visit({ port }: Latchkey): Measured[1] {
  return async (ms) => (await ask(strangers, { port, ms })) as number;
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
  environment: Record<string, string>,
  use: (server: Latchkey, keys: readonly string[], dataDir: string) => Promise<Result>,
): Promise<Result> {
  const endings = new Endings();
  const dataDir = mkdtempSync(join(folder, "data-"));
  const bench = { folder, profile: false, atEnd: endings.add };
  try {
    const server = await startLatchkey(bench, { environment: { LATCHKEY_DATA_DIR: dataDir, ...environment } });
    return await use(server, await server.createKeys(1000, vastCounter), dataDir);
  } finally {
    await endings.run();
  }
}
