// What a verification costs beside the least that Node's servers do, in the same run: servers on one core, load on the
// other. `npm run bench:verify`, about 100 seconds; prints tables. With `profile`, Latchkey leaves a CPU profile in the
// folder `profiles`; with `json` or `grpc`, only that table is measured.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { hotMethods } from "../gen/latchkey/v1/keys_hot.ts";
import { inTurns, type Measured, row } from "./rounds.ts";
import { frameOf, prepareLoads } from "./verify/load-programs.ts";
import { type PinnedServer, startPinned } from "./verify/pinned-servers.ts";

// The compiler shares the servers' core: before it has caught up, a server with more code looks slower than it is.
const turns = { rounds: 4, roundMs: 2000, warmUpMs: 5000 };
const rootKey = "root-key-of-the-bench-0123456789abcdef";
const options = new Set(process.argv.slice(2));
const folder = mkdtempSync(join(tmpdir(), "latchkey-bench-"));
const servers: PinnedServer[] = [];

try {
  const loads = prepareLoads(folder);
  const latchkey = await startLatchkey();
  const plain = await createKey(latchkey.port, {});
  const limited = await createKey(latchkey.port, { ratelimit: { limit: 2_147_483_647, duration: 2_592_000_000 } });
  const answer = await post(latchkey.port, "/v1/keys.verifyKey", { key: plain });
  const bodyOf = (key: string) => JSON.stringify({ key });

  if (!options.has("grpc")) {
    const floor = await startFloor("http", answer);
    await compare("JSON over HTTP/1.1, 32 connections", {
      "bare `node:http`: parses the body, returns the same bytes": [floor, loads.json(floor.port, bodyOf(plain))],
      "Latchkey, cached key": [latchkey, loads.json(latchkey.port, bodyOf(plain))],
      "Latchkey, cached key with a local limit": [latchkey, loads.json(latchkey.port, bodyOf(limited))],
    });
  }

  if (!options.has("json")) {
    const frame = hotMethods[0]?.encodeFrame(JSON.parse(answer)) as Buffer;
    const compat = await startFloor("compat", frame);
    const stream = await startFloor("stream", frame);
    const grpcJs = await startFloor("grpcjs", frame);
    await compare("gRPC, 4 connections, 16 streams each", {
      "bare `node:http2`, compatibility API": [compat, loads.grpc(compat.port, frameOf(plain))],
      "bare `node:http2`, stream API": [stream, loads.grpc(stream.port, frameOf(plain))],
      "`@grpc/grpc-js` server, trivial handler": [grpcJs, loads.grpc(grpcJs.port, frameOf(plain))],
      "Latchkey, cached key": [latchkey, loads.grpc(latchkey.port, frameOf(plain))],
      "Latchkey, cached key with a local limit": [latchkey, loads.grpc(latchkey.port, frameOf(limited))],
    });
  }
} finally {
  for (const server of servers) await server.stop();
  rmSync(folder, { recursive: true });
}

async function startLatchkey(): Promise<PinnedServer> {
  const entry = join(import.meta.dirname, "../src/cli/latchkey.ts");
  const profile = options.has("profile") ? ["--cpu-prof", "--cpu-prof-dir=profiles"] : [];
  const portOf = (line: string) => (line.includes('"msg":"serving"') ? (JSON.parse(line).port as number) : undefined);
  const server = await startPinned([...profile, entry, "serve"], portOf, {
    PORT: "0",
    LATCHKEY_INTERNAL_PORT: "0",
    LATCHKEY_DATA_DIR: join(folder, "data"),
    LATCHKEY_ROOT_KEY: rootKey,
    // A key that is looked up again now and then would not be from memory.
    LATCHKEY_CACHE_TTL_MS: "86400000",
    LATCHKEY_DRAIN_MS: "0",
  });
  servers.push(server);
  return server;
}

async function startFloor(kind: string, answer: string | Uint8Array): Promise<PinnedServer> {
  const file = join(folder, `answer-${kind}`);
  writeFileSync(file, answer);
  const script = join(import.meta.dirname, "verify/floor-server.ts");
  const server = await startPinned([script, kind, file], (line) => (/^\d+$/.test(line) ? Number(line) : undefined));
  servers.push(server);
  return server;
}

async function createKey(port: number, extra: object): Promise<string> {
  return JSON.parse(await post(port, "/v1/keys.createKey", { apiId: "bench", prefix: "live", ...extra })).key;
}

async function post(port: number, path: string, body: object): Promise<string> {
  const headers = { "content-type": "application/json", authorization: `Bearer ${rootKey}` };
  const response = await fetch(`http://127.0.0.1:${port}${path}`, {
    method: "POST",
    headers,
    body: JSON.stringify(body),
  });
  if (response.status !== 200) throw new Error(`${path} answered ${response.status}`);
  return response.text();
}

type Load = (ms: number) => Promise<number>;

/**
 * The first is the floor that the others are measured by. Beside the throughput stands the server's own processor time for
 * each request, median of the rounds: where others use the machine too, it is the better of the two to go by.
 */
async function compare(title: string, contestants: Readonly<Record<string, readonly [PinnedServer, Load]>>) {
  const micros = new Map<string, number[]>();
  const metered = Object.entries(contestants).map(([name, [server, load]]) => {
    const measure: Load = async (ms) => {
      const before = server.cpuMs();
      const served = await load(ms);
      micros.set(name, [...(micros.get(name) ?? []), ((server.cpuMs() - before) * 1000) / served]);
      return served;
    };
    return [name, measure] as const;
  });
  const measured = await inTurns(Object.fromEntries(metered), turns);
  const [floor = ""] = Object.keys(contestants);
  console.log(
    `\n| ${title}: requests per second | median | spread | ratio | CPU µs each | CPU ratio |\n|---|---|---|---|---|---|`,
  );
  for (const name of Object.keys(contestants)) {
    // The first was the warm-up.
    const [each, least] = [name, floor].map((which) => median(micros.get(which)?.slice(1) ?? [])) as [number, number];
    const cpu = `${each.toFixed(1)} | ${(least / each).toFixed(2)} × |`;
    console.log(`${row(name, measured[name] as Measured, measured[floor] as Measured, 2)} ${cpu}`);
  }
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
}
