import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import { PostgresServer } from "../../test/support/postgres-server.ts";
import { fillPostgres } from "../contestants/fill-postgres.ts";
import { closeInOrder, fillStore } from "../contestants/fill-store.ts";
import { startLatchkey } from "../contestants/latchkey.ts";
import { barePort, type ServerProcess, startServer } from "../contestants/server-process.ts";
import type { Bench, Section } from "../harness/section.ts";
import { verifyEachOnce } from "../loads/verify-each-once.ts";
import { type KeyFile, shuffleKeyFile } from "../loads/wrk-scripts.ts";

const connections = 128;
const heapMb = 4096;

export const cold: Section<"embedded" | "postgres" | "batched"> = {
  title: "Cold start",
  how: `Keys without counter, each verified once in random order, over ${connections} connections with one request under way each, by a server that has just started (\`LATCHKEY_CACHE_KEYS_MAX\` above their number); then all of them once more, from memory. The data is in the system's own cache, since it was just written. A million keys, or as many as \`npm run bench -- cold keys=100000\` says. Beside Latchkey on Postgres, the same server with one prepared query per miss over a pool of 10. Postgres and the load share a core.`,
  goals: {
    embedded: { what: "embedded store, first verification of each key beside the second", unit: "×", atLeast: 0.6 },
    postgres: { what: "Postgres, first verification of each key beside the second", unit: "×", atLeast: 0.5 },
    batched: { what: "Postgres, first verification of each key beside one query per miss", unit: "×", atLeast: 1.7 },
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
    return {
      text: [[...head, ...rows].join("\n"), `${bench.growthKeys} keys.`],
      figures: {
        embedded: ratioOf(embedded),
        postgres: ratioOf(batched),
        batched: batched.first.perSecond / perMiss.first.perSecond,
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

async function measureEmbedded(bench: Bench): Promise<Both> {
  const dataDir = mkdtempSync(join(bench.folder, "cold-"));
  const created = await fillStore(dataDir, bench.growthKeys, join(bench.folder, "embedded-in-order"));
  await closeInOrder(dataDir);
  const keys = shuffleKeyFile(created, join(bench.folder, "embedded-keys"));
  return verifyTwice(await startLatchkey(bench, optionsFor(bench, { LATCHKEY_DATA_DIR: dataDir })), keys);
}

async function measurePostgres(bench: Bench): Promise<{ batched: Both; perMiss: Both }> {
  const postgres = await PostgresServer.start({ shared_buffers: "512MB" });
  bench.atEnd(() => postgres.remove());
  const url = await postgres.createDatabase();
  const created = await fillPostgres(url, bench.growthKeys, join(bench.folder, "postgres-in-order"));
  const keys = shuffleKeyFile(created, join(bench.folder, "postgres-keys"));
  const script = join(import.meta.dirname, "../contestants/query-per-miss-server.ts");
  const args = [`--max-old-space-size=${heapMb}`, script, url, `${cacheKeysFor(bench)}`];
  const perMiss = await verifyTwice(await startServer(bench, args, barePort), keys);
  const batched = await verifyTwice(await startLatchkey(bench, optionsFor(bench, { DATABASE_URL: url })), keys);
  return { batched, perMiss };
}

function cacheKeysFor(bench: Bench): number {
  return bench.growthKeys + 1000;
}

function optionsFor(bench: Bench, environment: Readonly<Record<string, string>>) {
  return {
    nodeArgs: [`--max-old-space-size=${heapMb}`],
    environment: { LATCHKEY_CACHE_KEYS_MAX: `${cacheKeysFor(bench)}`, ...environment },
  };
}

async function verifyTwice(server: ServerProcess, keys: KeyFile): Promise<Both> {
  return { first: await verifyAll(server, keys), second: await verifyAll(server, keys) };
}

async function verifyAll(server: ServerProcess, keys: KeyFile): Promise<Round> {
  const startedMs = performance.now();
  const cpuBeforeMs = server.cpuMs();
  await verifyEachOnce(server.port, keys, { connections, together: 1 });
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
