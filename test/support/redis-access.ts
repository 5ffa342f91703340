import { parseRedisUrl } from "../../src/domain/redis-url.ts";
import type { RedisAccess } from "../../src/ratelimit/redis/locate-server.ts";

export function redisAccess(url: string, ca?: string): RedisAccess {
  return { servers: parseRedisUrl(url), ca };
}
