// Uses settled per second on Postgres: our batches beside one UPDATE per request over a pool, in the same run.
// `npm run bench:ledger`; takes about a minute and a half, prints a table.
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import pg from "pg";
import { systemClock } from "../src/ambient/clock.ts";
import { createLog } from "../src/ambient/log.ts";
import { createMetrics } from "../src/ambient/metrics.ts";
import { createSystemRandom } from "../src/ambient/random.ts";
import { WaitingRoom } from "../src/domain/waiting-room.ts";
import { WindowTable } from "../src/domain/window-table.ts";
import { LocalLimiter } from "../src/ratelimit/local/local-limiter.ts";
import { createPublicApi } from "../src/server/public-api.ts";
import { CachedKeyLookup } from "../src/store/cached-key-lookup.ts";
import { CoalescingUsageLedger } from "../src/store/coalescing-usage-ledger.ts";
import { openPostgresStore } from "../src/store/postgres/open-postgres-store.ts";
import type { Store } from "../src/store/store.ts";
import type { UsageLedger } from "../src/store/usage-ledger.ts";
import { type CreatedKey, createKey } from "../src/usecases/create-key.ts";
import { plainKey } from "../test/support/plain-key.ts";
import { PostgresServer } from "../test/support/postgres-server.ts";
import { inTurns, keepBusy, row } from "./rounds.ts";

const keyCount = 1000;
const inFlight = 512;
const connections = 128;
const poolSize = 12;
const lanes = 2;
const turns = { rounds: 5, roundMs: 1500 };

const ambient = {
  clock: systemClock,
  random: createSystemRandom(),
  metrics: createMetrics(),
  log: createLog("error", (line) => process.stderr.write(line)),
};
const waitingRoom = new WaitingRoom(100_000);
const postgres = await PostgresServer.start();
try {
  const url = await postgres.createDatabase();
  const store = await openPostgresStore({ ...ambient, url, connectionsMax: 10, lanes, usageTimeoutMs: 5000 });
  const keys = await createKeys(store);
  const batched = new CoalescingUsageLedger(store.usageLanes, { ...ambient, waitingRoom });
  const pool = new pg.Pool({ connectionString: url, max: poolSize });
  const oneByOne = updatePerRequest(pool);

  console.log(`| spends per second, ${inFlight} in flight | median | spread | ratio |\n|---|---|---|---|`);
  for (const [name, pick] of [
    [`${keyCount} keys`, (n: number) => keys[n % keyCount]?.keyId as string],
    ["one hot key", () => keys[0]?.keyId as string],
  ] as const) {
    const spendOn = (ledger: UsageLedger) => (ms: number) => keepBusy(inFlight, ms, (n) => ledger.spend([pick(n)], 1));
    const measured = await inTurns({ oneByOne: spendOn(oneByOne), batched: spendOn(batched) }, turns);
    console.log(row(`one UPDATE per request, pool of ${poolSize}, ${name}`, measured.oneByOne, measured.oneByOne));
    console.log(row(`batched, ${lanes} lanes, ${name}`, measured.batched, measured.oneByOne));
  }

  console.log(
    `\n| verifications per second over HTTP, ${connections} connections | median | spread | ratio |\n|---|---|---|---|`,
  );
  const load = fork(join(import.meta.dirname, "http-load.ts"));
  const serveOneByOne = await serve(store, oneByOne);
  const serveBatched = await serve(store, batched);
  for (const [name, bodies] of [
    [`${keyCount} keys`, keys.map(({ key }) => JSON.stringify({ key }))],
    ["one hot key", [JSON.stringify({ key: keys[0]?.key })]],
  ] as const) {
    const measured = await inTurns(
      { oneByOne: loadOn(load, serveOneByOne.port, bodies), batched: loadOn(load, serveBatched.port, bodies) },
      turns,
    );
    console.log(row(`one UPDATE per request, ${name}`, measured.oneByOne, measured.oneByOne));
    console.log(row(`batched, ${name}`, measured.batched, measured.oneByOne));
  }
  load.kill();
  for (const server of [serveOneByOne, serveBatched]) await server.close();
  await pool.end();
  await store.close();
} finally {
  await postgres.remove();
}

async function createKeys(store: Store) {
  const made = { prefix: undefined, byteLength: undefined, useDefaults: false, apiId: "bench" };
  const request = { ...plainKey, ...made, remaining: 2_000_000_000 };
  const keys: CreatedKey[] = [];
  while (keys.length < keyCount) {
    const some = Array.from({ length: 50 }, () => createKey(store.management, request, undefined, ambient));
    keys.push(...(await Promise.all(some)));
  }
  return keys;
}

/** The peer: each use is a statement and a commit of its own. */
function updatePerRequest(pool: pg.Pool): UsageLedger {
  const text = "UPDATE counters SET remaining = remaining - 1 WHERE subject = $1 AND remaining > 0 RETURNING remaining";
  return {
    async spend([keyId]) {
      const { rows } = await pool.query({ name: "spend", text, values: [keyId] });
      return { outcome: "spent", remaining: Number(rows[0].remaining) };
    },
  };
}

/** The whole service but for the ledger, which is the one given. */
async function serve(store: Store, usage: UsageLedger): Promise<{ port: number; close: () => Promise<void> }> {
  const cache = { ttlMs: 3_600_000, keysMax: 100_000, waitingRoom };
  const keys = new CachedKeyLookup(store.keys, cache, ambient);
  const limiter = new LocalLimiter(new WindowTable(1), ambient);
  const { onePort } = createPublicApi({
    ...ambient,
    keys,
    owners: { ownerOf: () => undefined },
    usage,
    limiter,
    checkRootKey: () => undefined,
    readHolders: () => Promise.reject(new Error("nobody asks")),
    manages: { management: store.management },
    fastPath: true,
    verifyAuth: "open",
    publicUrl: "",
    corsOrigins: [],
    settings: { connectionsMax: 20_000, logLevel: "warn", logVerifications: "none", tls: undefined },
  });
  return { port: await onePort.listen(0, "127.0.0.1"), close: () => onePort.close(1000) };
}

function loadOn(load: ChildProcess, port: number, bodies: readonly string[]) {
  return async (ms: number): Promise<number> => {
    load.send({ port, bodies, connections, ms });
    const [{ served, refused }] = (await once(load, "message")) as [{ served: number; refused: number }];
    // Not counted as served; said, so that a contestant cannot look fast by turning callers away.
    if (refused > 0) console.error(`port ${port}: ${refused} of ${served + refused} were not answered with 200`);
    return served;
  };
}
