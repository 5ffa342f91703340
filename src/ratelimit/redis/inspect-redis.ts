import { systemClock } from "../../ambient/clock.ts";
import type { RedisAddress } from "../../domain/redis-url.ts";
import { connectRedis, createRedis, locateServer, type RedisAccess, readSlots } from "./locate-server.ts";
import { checkInfo, readInfo } from "./redis-connection.ts";

/** What a Redis server reports about itself. */
export interface RedisFacts {
  /** `host:port`. */
  readonly address: string;
  /** Empty if this user may not ask, as are the others then. */
  readonly version: string;
  readonly isClusterNode: boolean;
  readonly roundTripMs: number;
  readonly usedBytes: number;
  /** 0: no bound. */
  readonly maxBytes: number;
  /** What is evicted when that bound is reached. */
  readonly evictionPolicy: string;
}

/**
 * The one server, the master, or every master of the cluster. Reads only. Throws what the server or the connection says,
 * and `WrongServer`.
 */
export async function inspectRedis(access: RedisAccess): Promise<readonly RedisFacts[]> {
  const { servers } = access;
  const addresses = servers.kind === "cluster" ? await mastersOf(access) : [await locateServer(access, 0)()];
  return Promise.all(addresses.map((address) => inspectServer(access, address)));
}

async function mastersOf(access: RedisAccess): Promise<readonly RedisAddress[]> {
  const owners = await readSlots(access, access.servers.addresses);
  const byName = owners.flatMap((owner) => (owner ? [[`${owner.host}:${owner.port}`, owner] as const] : []));
  return [...new Map(byName).values()];
}

async function inspectServer(access: RedisAccess, address: RedisAddress): Promise<RedisFacts> {
  const redis = createRedis(access, address, { connectionName: "latchkey-doctor" });
  try {
    await connectRedis(redis);
    const sentMs = systemClock.monotonicMs();
    const info = await readInfo(redis);
    const roundTripMs = systemClock.monotonicMs() - sentMs;
    checkInfo(info);
    const read = (name: string) => new RegExp(`^${name}:(.*?)\\r?$`, "m").exec(info)?.[1] ?? "";
    return {
      address: `${address.host}:${address.port}`,
      version: read("redis_version"),
      isClusterNode: read("cluster_enabled") === "1",
      roundTripMs,
      usedBytes: Number(read("used_memory")),
      maxBytes: Number(read("maxmemory")),
      evictionPolicy: read("maxmemory_policy"),
    };
  } finally {
    redis.disconnect();
  }
}
