import { describe, expect, it } from "vitest";
import { RedisCluster } from "../support/redis-cluster.ts";
import { atTestEnd } from "../support/test-end.ts";
import { hasRedis, startTestRedis } from "../support/test-redis.ts";
import { expectFound, healthyEnvironment, type PlantedFault, password, runDoctor } from "./run-doctor.ts";

async function redisWith(settings: Record<string, string>, ...commands: readonly string[]) {
  const redis = await startTestRedis(settings);
  for (const command of commands) await redis.command(command);
  return { REDIS_URL: redis.url() };
}

const faults: readonly PlantedFault[] = [
  {
    fault: "an address where nothing listens",
    plant: () => ({ REDIS_URL: `redis://:${password}@127.0.0.1:1` }),
    ...{ id: "redis-unreachable", fix: "redis-cli -h 127.0.0.1 -p 1 PING", code: 3 },
  },
  {
    fault: "a policy that evicts windows in use",
    plant: () => redisWith({ maxmemory: "100mb", "maxmemory-policy": "allkeys-lru" }),
    ...{ id: "redis-eviction", fix: "CONFIG SET maxmemory-policy volatile-ttl", code: 3 },
  },
  {
    fault: "memory that is used up",
    plant: () => redisWith({}, "CONFIG SET maxmemory 900000"),
    ...{ id: "redis-memory-low", fix: /CONFIG SET maxmemory 2mb/, code: 3 },
  },
  {
    fault: "a wrong password",
    async plant() {
      const redis = await startTestRedis();
      await redis.command("CONFIG SET requirepass another-one");
      return { REDIS_URL: `redis://:${password}@127.0.0.1:${redis.port}` };
    },
    ...{ id: "redis-refused", fix: /Correct the password in REDIS_URL/, code: 3 },
  },
  {
    fault: "a password that is missing",
    plant: () => redisWith({}, "CONFIG SET requirepass another-one"),
    ...{ id: "redis-refused", fix: /Correct the password in REDIS_URL/, code: 3 },
  },
  {
    fault: "one server where the URL names a cluster",
    async plant() {
      const { port } = await startTestRedis();
      return { REDIS_URL: `redis+cluster://127.0.0.1:${port}` };
    },
    ...{ id: "redis-cluster-mismatch", fix: /^REDIS_URL=redis:\/\/127/, code: 3 },
  },
];

describe.runIf(hasRedis).concurrent("latchkey doctor, of Redis", () => {
  it.each(faults)("finds $fault, names the fix, and finds nothing else", expectFound);

  it("finds nothing in a cluster, and one of its nodes where the URL names one server", async () => {
    const cluster = await RedisCluster.start("latchkey:doctor");
    atTestEnd(() => cluster.remove());
    const answer = await runDoctor({ ...healthyEnvironment(), REDIS_URL: cluster.url });
    expect(answer).toMatchObject({ ids: [], code: 0 });
    expect(answer.checked.filter(({ area }) => area === "redis")).toHaveLength(3);
    const node = await runDoctor({ ...healthyEnvironment(), REDIS_URL: cluster.masters[0]?.url() ?? "" });
    expect(node).toMatchObject({ ids: ["redis-cluster-mismatch"], code: 3 });
    expect(node.findings[0]?.fix).toMatch(/^REDIS_URL=redis\+cluster:/);
  });
});
