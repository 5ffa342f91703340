import type { Settings } from "../config/settings.ts";
import { parseRedisUrl } from "../domain/redis-url.ts";
import type { RedisAccess } from "../ratelimit/redis/locate-server.ts";

/** How to reach Redis; undefined if none is configured. */
export function redisAccessOf({ redisUrl, redisCa }: Partial<Settings>): RedisAccess | undefined {
  return redisUrl && { servers: parseRedisUrl(redisUrl.reveal()), ca: redisCa };
}
