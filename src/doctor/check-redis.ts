import { inspectRedis, type RedisFacts } from "../ratelimit/redis/inspect-redis.ts";
import { isReply, type RedisAccess, redisReason, WrongServer } from "../ratelimit/redis/locate-server.ts";
import type { Report } from "./run-checks.ts";

/** Policies that do not evict windows in use, or only those that end soon. */
const policies = ["noeviction", "volatile-ttl"];
const fullFrom = 0.9;
const mebibyte = 2 ** 20;

/** The Redis that REDIS_URL leads to: every master, if it is a cluster. */
export async function checkRedis(access: RedisAccess, report: Report): Promise<void> {
  try {
    for (const facts of await inspectRedis(access)) reportServer(access, facts, report);
  } catch (error) {
    reportFailure(access, error as Error, report);
  }
}

function reportServer({ servers }: RedisAccess, facts: RedisFacts, { checked, found }: Report): void {
  const { address, usedBytes, maxBytes, evictionPolicy } = facts;
  checked(`Redis ${facts.version} at ${address}, ${Math.round(facts.roundTripMs)} ms away`);
  if (facts.isClusterNode && servers.kind !== "cluster") {
    const fix = `REDIS_URL=redis+cluster://${address} (with user:password@ in front of the address, if it asks for them)`;
    found("redis-cluster-mismatch", `${address} is a node of a Redis Cluster, and REDIS_URL names one server`, fix);
  }
  if (maxBytes === 0 || facts.version === "") return;
  const max = `${Math.floor(maxBytes / mebibyte)} MiB`;
  if (!policies.includes(evictionPolicy)) {
    const fix = `redis-cli CONFIG SET maxmemory-policy volatile-ttl, and the same in redis.conf.`;
    found("redis-eviction", `${address} evicts by ${evictionPolicy} when it has ${max}`, fix);
  }
  if (usedBytes > fullFrom * maxBytes) {
    const fix = `redis-cli CONFIG SET maxmemory ${2 * Math.ceil(maxBytes / mebibyte)}mb, and the same in redis.conf; redis-cli --bigkeys shows what takes the room.`;
    found("redis-memory-low", `${address} uses ${Math.floor((100 * usedBytes) / maxBytes)} % of its ${max}`, fix);
  }
}

function reportFailure({ servers }: RedisAccess, error: Error, { found }: Report): void {
  const where = servers.addresses.map(({ host, port }) => `${host}:${port}`).join(", ");
  const reason = redisReason(error);
  if (error instanceof WrongServer && reason === "not a cluster") {
    const fix = `REDIS_URL=redis://${where} (with user:password@ in front of the address, if it asks for them)`;
    found("redis-cluster-mismatch", `${where} is one server, and REDIS_URL names a Redis Cluster`, fix);
  } else if (error instanceof WrongServer || isReply(error)) {
    found("redis-refused", `Redis at ${where} refuses: ${reason}`, refusalFix(reason));
  } else {
    const { host, port } = servers.addresses[0] as { host: string; port: number };
    const fix = `redis-cli -h ${host} -p ${port} PING from this machine; if that fails too, start Redis, or correct REDIS_URL or the firewall.`;
    found("redis-unreachable", `Redis at ${where} does not answer: ${reason}`, fix);
  }
}

/** By the first word of what it answered. */
function refusalFix(reason: string): string {
  switch (reason) {
    case "WRONGPASS":
    case "NOAUTH":
      return "Correct the password in REDIS_URL: redis://user:password@host:6379, percent-encoded; redis-cli CONFIG GET requirepass or ACL LIST shows what it asks for.";
    case "NOPERM":
      return "redis-cli ACL SETUSER name on '~latchkey:*' '&latchkey:*' +@all";
    case "READONLY":
      return "Name the master in REDIS_URL, or the Sentinels: redis+sentinel://host:26379/master-name.";
    case "Sentinel does not know the master":
      return "redis-cli -p 26379 SENTINEL MASTERS lists the names; put the right one at the end of REDIS_URL.";
    case "LOADING":
      return "Wait until Redis has read its data: redis-cli INFO persistence.";
    default:
      return "redis-cli PING and redis-cli INFO from this machine show more.";
  }
}
