import { join } from "node:path";
import { PostgresServer } from "../../test/support/postgres-server.ts";
import { RedisServer } from "../../test/support/redis-server.ts";
import { startLatchkey, vastCounter, vastLimit, verify } from "../contestants/latchkey.ts";
import { installPeers, startBetterAuth, startFastify } from "../contestants/peers.ts";
import type { ServerProcess } from "../contestants/server-process.ts";
import { compare } from "../harness/compare.ts";
import type { Bench, Section } from "../harness/section.ts";
import { writeKeyFile } from "../loads/wrk-scripts.ts";

const keyCount = 1000;
const connections = 128;
/** Fewer, and longer rounds: with 128 under way each, better-auth would spend much of a round on those not yet done. */
const counted = { connections: 32, roundMs: 3000 };

const what = (limit: string, peer: string) => `${limit}, beside fastify + rate-limiter-flexible ${peer}`;

export const peers: Section<"memory" | "redis" | "redisHot" | "postgres" | "postgresHot" | "betterAuth"> = {
  title: "Peers",
  how: `${keyCount} keys in turn, or one, ${connections} connections (beside better-auth ${counted.connections}, and rounds of ${counted.roundMs / 1000} s, as it is slow). fastify with rate-limiter-flexible looks keys up by their digest in memory and writes answers of the same shape by a schema; its Redis client (ioredis) sends what a turn asks for together, its Postgres pool has 20 connections. better-auth verifies from a fastify handler, with its rate limits off and a pool of 20. Limits are never reached. Postgres and Redis are not pinned.`,
  goals: {
    memory: { what: what("local limit", "in memory"), unit: "×", atLeast: 1.1 },
    redisHot: { what: what("strict limit on Postgres, one hot key", "on Redis"), unit: "×", atLeast: 1.3 },
    redis: { what: what(`strict limit on Postgres, ${keyCount} keys`, "on Redis"), unit: "×", atLeast: 1.3 },
    postgresHot: { what: what("strict limit on Postgres, one hot key", "on Postgres"), unit: "×", atLeast: 3 },
    postgres: { what: what(`strict limit on Postgres, ${keyCount} keys`, "on Postgres"), unit: "×", atLeast: 3 },
    betterAuth: { what: "counted keys on Postgres, beside better-auth", unit: "×", atLeast: 3 },
  },
  async measure(bench) {
    installPeers();
    const postgres = await PostgresServer.start();
    bench.atEnd(() => postgres.remove());
    const { spread, hot } = await compareLimits(bench, postgres);
    const counters = await compareCounters(bench, postgres);
    return {
      text: [spread.table, hot.table, counters.table],
      figures: {
        memory: spread.ratio("local", "memory"),
        redis: spread.ratio("strict", "redis"),
        redisHot: hot.ratio("strict", "redis"),
        postgres: spread.ratio("strict", "postgres"),
        postgresHot: hot.ratio("strict", "postgres"),
        betterAuth: counters.ratio("latchkey", "betterAuth"),
      },
    };
  },
};

async function compareLimits(bench: Bench, postgres: PostgresServer) {
  const redisServer = await RedisServer.start();
  bench.atEnd(() => redisServer.remove());
  const latchkey = await startLatchkey(bench, { environment: { DATABASE_URL: await postgres.createDatabase() } });
  const local = await latchkey.createKeys(keyCount, { ratelimit: vastLimit });
  const strict = await latchkey.createKeys(keyCount, { ratelimit: { ...vastLimit, async: false } });
  const memory = await startFastify(bench, "memory", local);
  const redis = await startFastify(bench, "redis", local, redisServer.url());
  const onPostgres = await startFastify(bench, "postgres", local, await postgres.createDatabase());

  const flexible = (store: string, server: ServerProcess) => ({
    title: `fastify + rate-limiter-flexible, ${store}`,
    server,
  });
  const onLatchkey = (title: string) => ({ title: `Latchkey, ${title}`, server: latchkey });
  const spread = await compare(
    `Rate limits, ${keyCount} keys`,
    {
      memory: { ...flexible("memory", memory), load: await loadOn(bench, memory, local) },
      local: { ...onLatchkey("local limit"), load: await loadOn(bench, latchkey, local) },
      redis: { ...flexible("Redis", redis), load: await loadOn(bench, redis, local) },
      postgres: { ...flexible("Postgres", onPostgres), load: await loadOn(bench, onPostgres, local) },
      strict: { ...onLatchkey("strict limit on Postgres"), load: await loadOn(bench, latchkey, strict) },
    },
    bench.turns,
  );
  const hotLoad = ({ port }: ServerProcess, [key]: readonly string[]) =>
    bench.loads.json(port, key as string, { connections });
  const hot = await compare(
    "Rate limits, one hot key",
    {
      redis: { ...flexible("Redis", redis), load: hotLoad(redis, local) },
      postgres: { ...flexible("Postgres", onPostgres), load: hotLoad(onPostgres, local) },
      strict: { ...onLatchkey("strict limit on Postgres"), load: hotLoad(latchkey, strict) },
    },
    bench.turns,
  );
  return { spread, hot };
}

async function compareCounters(bench: Bench, postgres: PostgresServer) {
  const latchkey = await startLatchkey(bench, { environment: { DATABASE_URL: await postgres.createDatabase() } });
  const keys = await latchkey.createKeys(keyCount, vastCounter);
  const betterAuth = await startBetterAuth(bench, await postgres.createDatabase(), keyCount);
  return compare(
    "Counted keys on Postgres",
    {
      betterAuth: {
        title: "better-auth, `remaining`",
        server: betterAuth.server,
        load: await loadOn(bench, betterAuth.server, betterAuth.keys, counted),
      },
      latchkey: {
        title: "Latchkey, `remaining`",
        server: latchkey,
        load: await loadOn(bench, latchkey, keys, counted),
      },
    },
    { ...bench.turns, roundMs: counted.roundMs },
  );
}

let files = 0;

/** Of a contestant that has shown to know its keys. */
async function loadOn(bench: Bench, { port }: ServerProcess, keys: readonly string[], options = { connections }) {
  await verify(port, keys[0] as string);
  const file = writeKeyFile(join(bench.folder, `peer-keys-${files++}`), keys);
  return bench.loads.manyKeys(port, file, "in turn", options);
}
