import { execFileSync } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import { freePort } from "../../test/support/local-server.ts";
import { PostgresServer } from "../../test/support/postgres-server.ts";
import { fillPostgres } from "../contestants/fill-postgres.ts";
import { closeInOrder, fillStore } from "../contestants/fill-store.ts";
import { startLatchkey } from "../contestants/latchkey.ts";
import { barePort, type ServerProcess, startServer } from "../contestants/server-process.ts";
import type { Bench, Section } from "../harness/section.ts";
import { loadCore } from "../loads/load-programs.ts";
import { connectionsMax, type KeyFile, shuffleKeyFile } from "../loads/wrk-scripts.ts";

const heapMb = 4096;

export const cold: Section<"embedded" | "postgres" | "batched" | "lookups"> = {
  title: "Cold start",
  how: `Keys without counter, each verified once in random order, over ${connectionsMax} connections with one request under way each, by a server that has just started (\`LATCHKEY_CACHE_KEYS_MAX\` above their number, \`LATCHKEY_CACHE_TTL_MS\` at its default of a minute); then all of them once more, from memory; then all of them again and again, for as long as \`minutes=5\` says, or a little more than that minute. The data is in the system's own cache, since it was just written. A million keys, or as many as \`npm run bench -- cold keys=100000\` says. Beside Latchkey on Postgres, the same server with one prepared query per miss over a pool of 10. The server has a core of its own; Postgres and the load share the other one.`,
  goals: {
    embedded: { what: "embedded store, first verification of each key beside the second", unit: "×", atLeast: 0.6 },
    postgres: { what: "Postgres, first verification of each key beside the second", unit: "×", atLeast: 0.5 },
    batched: { what: "Postgres, first verification of each key beside one query per miss", unit: "×", atLeast: 1.7 },
    lookups: { what: "look-ups after the first round, on both stores", unit: "", atMost: 0 },
  },
  async measure(bench) {
    const embedded = await measureEmbedded(bench);
    const { batched, perMiss } = await measurePostgres(bench);
    const head = [
      "| requests per second | first | second | ratio | CPU µs each, first | second |",
      "|---|---|---|---|---|---|",
    ];
    const rows = [
      row("embedded store", embedded),
      row("Postgres, misses of a turn in one statement", batched),
      row("Postgres, one query per miss", perMiss),
    ];
    const remarks = [describeRest("embedded store", embedded), describeRest("store on Postgres", batched)];
    return {
      text: [[...head, ...rows].join("\n"), `${bench.growthKeys} keys. ${remarks.join(" ")}`],
      figures: {
        embedded: ratioOf(embedded),
        postgres: ratioOf(batched),
        batched: batched.first.perSecond / perMiss.first.perSecond,
        lookups: embedded.lookups.rest + batched.lookups.rest,
      },
    };
  },
};

interface Round {
  readonly perSecond: number;
  readonly cpuMicros: number;
}

interface Both {
  readonly first: Round;
  readonly second: Round;
}

/** Look-ups of the first round, and of all rounds after it. */
interface Whole extends Both {
  readonly rounds: number;
  readonly lookups: { readonly first: number; readonly rest: number };
}

async function measureEmbedded(bench: Bench): Promise<Whole> {
  const dataDir = mkdtempSync(join(bench.folder, "cold-"));
  const created = await fillStore(dataDir, bench.growthKeys, join(bench.folder, "embedded-in-order"));
  await closeInOrder(dataDir);
  const keys = shuffleKeyFile(created, join(bench.folder, "embedded-keys"));
  return measureLatchkey(bench, { LATCHKEY_DATA_DIR: dataDir }, keys);
}

async function measurePostgres(bench: Bench): Promise<{ batched: Whole; perMiss: Both }> {
  const postgres = await PostgresServer.start({ shared_buffers: "512MB" });
  bench.atEnd(() => postgres.remove());
  const url = await postgres.createDatabase();
  const created = await fillPostgres(url, bench.growthKeys, join(bench.folder, "postgres-in-order"));
  const keys = shuffleKeyFile(created, join(bench.folder, "postgres-keys"));
  // Every process that it starts from now on inherits this. On the server's core it would take from what is measured.
  execFileSync("taskset", ["-cp", loadCore, `${postgres.pid}`]);
  const script = join(import.meta.dirname, "../contestants/query-per-miss-server.ts");
  const args = [`--max-old-space-size=${heapMb}`, script, url, `${cacheKeysFor(bench)}`];
  const perMiss = await verifyTwice(bench, await startServer(bench, args, barePort), keys);
  return { batched: await measureLatchkey(bench, { DATABASE_URL: url }, keys), perMiss };
}

async function measureLatchkey(
  bench: Bench,
  environment: Readonly<Record<string, string>>,
  keys: KeyFile,
): Promise<Whole> {
  const internalPort = await freePort();
  const server = await startLatchkey(bench, {
    nodeArgs: [`--max-old-space-size=${heapMb}`],
    environment: {
      LATCHKEY_CACHE_KEYS_MAX: `${cacheKeysFor(bench)}`,
      // Keys stay in memory for longer than this, because news of changes is current.
      LATCHKEY_CACHE_TTL_MS: "60000",
      LATCHKEY_INTERNAL_PORT: `${internalPort}`,
      ...environment,
    },
  });
  const first = await verifyAll(bench, server, keys);
  const before = await readCounts(internalPort);
  if (before.verified < keys.count) throw new Error(`${before.verified} of ${keys.count} keys were found valid`);
  const untilMs = performance.now() + bench.coldMinutes * 60_000;
  const second = await verifyAll(bench, server, keys);
  let rounds = 2;
  for (; performance.now() < untilMs; rounds++) await verifyAll(bench, server, keys);
  const after = await readCounts(internalPort);
  return { first, second, rounds, lookups: { first: before.lookups, rest: after.lookups - before.lookups } };
}

interface Counts {
  readonly verified: number;
  readonly lookups: number;
}

async function readCounts(internalPort: number): Promise<Counts> {
  const text = await (await fetch(`http://127.0.0.1:${internalPort}/metrics`)).text();
  const countOf = (name: string) =>
    Number(
      text
        .split("\n")
        .find((line) => line.startsWith(name))
        ?.split(" ")[1] ?? 0,
    );
  return {
    verified: countOf('latchkey_verifications_total{code="VALID"}'),
    lookups: countOf('latchkey_key_cache_total{event="miss"}'),
  };
}

function cacheKeysFor(bench: Bench): number {
  return bench.growthKeys + 1000;
}

async function verifyTwice(bench: Bench, server: ServerProcess, keys: KeyFile): Promise<Both> {
  return { first: await verifyAll(bench, server, keys), second: await verifyAll(bench, server, keys) };
}

async function verifyAll({ loads }: Bench, server: ServerProcess, keys: KeyFile): Promise<Round> {
  const startedMs = performance.now();
  const cpuBeforeMs = server.cpuMs();
  await loads.eachKeyOnce(server.port, keys)();
  const seconds = (performance.now() - startedMs) / 1000;
  return { perSecond: keys.count / seconds, cpuMicros: ((server.cpuMs() - cpuBeforeMs) * 1000) / keys.count };
}

function ratioOf({ first, second }: Both): number {
  return first.perSecond / second.perSecond;
}

function row(title: string, both: Both): string {
  const { first, second } = both;
  const rates = [first.perSecond, second.perSecond].map((rate) => rate.toFixed(0));
  const micros = [first.cpuMicros, second.cpuMicros].map((each) => each.toFixed(1));
  return `| ${title} | ${rates.join(" | ")} | ${ratioOf(both).toFixed(2)} × | ${micros.join(" | ")} |`;
}

function describeRest(title: string, { rounds, lookups }: Whole): string {
  return `On the ${title} there were ${lookups.first} look-ups in the first round and ${lookups.rest} in the ${rounds - 1} after it.`;
}
