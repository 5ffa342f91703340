import type { Settings } from "../config/settings.ts";
import { parseRedisUrl } from "../domain/redis-url.ts";
import type { RedisAccess } from "../ratelimit/redis/locate-server.ts";

/** How Redis is reached; undefined where this replica has none. */
export function redisAccessOf({ redisUrl, redisCa }: Settings): RedisAccess | undefined {
  return redisUrl && { servers: parseRedisUrl(redisUrl.reveal()), ca: redisCa };
}
