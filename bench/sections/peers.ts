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

export const peers: Section<"memory" | "redis" | "postgres" | "betterAuth"> = {
  title: "Peers",
  how: `${keyCount} keys in turn, ${connections} connections. fastify with rate-limiter-flexible looks keys up by their digest in memory and writes answers of the same shape by a schema; its Redis client (ioredis) sends what a turn asks for together, its Postgres pool has 20 connections. better-auth verifies from a fastify handler, with its rate limits off and a pool of 20. Limits are never reached. Postgres and Redis are not pinned.`,
  goals: {
    memory: { what: "local limit, beside fastify + rate-limiter-flexible in memory", unit: "×", atLeast: 1.1 },
    redis: { what: "strict limit on Postgres, beside the same on Redis", unit: "×", atLeast: 1.3 },
    postgres: { what: "strict limit on Postgres, beside the same on Postgres", unit: "×", atLeast: 3 },
    betterAuth: { what: "counted keys on Postgres, beside better-auth", unit: "×", atLeast: 3 },
  },
  async measure(bench) {
    installPeers();
    const postgres = await PostgresServer.start();
    bench.atEnd(() => postgres.remove());
    const limits = await compareLimits(bench, postgres);
    const counters = await compareCounters(bench, postgres);
    return {
      text: [limits.table, counters.table],
      figures: {
        memory: limits.ratio("local", "memory"),
        redis: limits.ratio("strict", "redis"),
        postgres: limits.ratio("strict", "postgres"),
        betterAuth: counters.ratio("latchkey", "betterAuth"),
      },
    };
  },
};

async function compareLimits(bench: Bench, postgres: PostgresServer) {
  const redis = await RedisServer.start();
  bench.atEnd(() => redis.remove());
  const latchkey = await startLatchkey(bench, { environment: { DATABASE_URL: await postgres.createDatabase() } });
  const local = await latchkey.createKeys(keyCount, { ratelimit: vastLimit });
  const strict = await latchkey.createKeys(keyCount, { ratelimit: { ...vastLimit, async: false } });
  const [memory, onRedis, onPostgres] = [
    await startFastify(bench, "memory", local),
    await startFastify(bench, "redis", local, redis.url()),
    await startFastify(bench, "postgres", local, await postgres.createDatabase()),
  ];
  const flexible = "fastify + rate-limiter-flexible";
  return compare(
    "Rate limits",
    {
      memory: { title: `${flexible}, memory`, server: memory, load: await loadOn(bench, memory, local) },
      local: { title: "Latchkey, local limit", server: latchkey, load: await loadOn(bench, latchkey, local) },
      redis: { title: `${flexible}, Redis`, server: onRedis, load: await loadOn(bench, onRedis, local) },
      postgres: { title: `${flexible}, Postgres`, server: onPostgres, load: await loadOn(bench, onPostgres, local) },
      strict: {
        title: "Latchkey, strict limit on Postgres",
        server: latchkey,
        load: await loadOn(bench, latchkey, strict),
      },
    },
    bench.turns,
  );
}

async function compareCounters(bench: Bench, postgres: PostgresServer) {
  const latchkey = await startLatchkey(bench, { environment: { DATABASE_URL: await postgres.createDatabase() } });
  const counted = await latchkey.createKeys(keyCount, vastCounter);
  const betterAuth = await startBetterAuth(bench, await postgres.createDatabase(), keyCount);
  return compare(
    "Counted keys on Postgres",
    {
      betterAuth: {
        title: "better-auth, `remaining`",
        server: betterAuth.server,
        load: await loadOn(bench, betterAuth.server, betterAuth.keys),
      },
      latchkey: { title: "Latchkey, `remaining`", server: latchkey, load: await loadOn(bench, latchkey, counted) },
    },
    bench.turns,
  );
}

let files = 0;

/** Of a contestant that has shown to know its keys. */
async function loadOn(bench: Bench, { port }: ServerProcess, keys: readonly string[]) {
  await verify(port, keys[0] as string);
  const file = writeKeyFile(join(bench.folder, `peer-keys-${files++}`), keys);
  return bench.loads.manyKeys(port, file, "in turn", { connections });
}
