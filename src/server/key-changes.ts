import type { Ambient } from "../ambient/ambient.ts";
import type { Settings } from "../config/settings.ts";
import type { KeyChange, KeyChanges } from "../store/key-changes.ts";
import type { RateLimits } from "./rate-limits.ts";
import { redisAccessOf } from "./redis-access.ts";

/** A cache of keys: of this thread, or of all serving threads. */
export interface KeyCache {
  invalidate(change: KeyChange): void;
  invalidateAll(): void;
}

interface KeyChangesDeps extends Pick<Ambient, "clock" | "log" | "metrics"> {
  readonly settings: Settings;
  readonly memory: KeyCache;
  readonly rateLimits: RateLimits;
}

/**
 * Updates this replica's cache and permits when a key changes: here, and on other replicas if Redis carries the
 * messages. A gauge shows whether it does.
 */
export async function connectKeyChanges(deps: KeyChangesDeps): Promise<KeyChanges & { close(): void }> {
  const { settings, memory: cache, rateLimits, metrics } = deps;
  const access = redisAccessOf(settings);
  if (access === undefined) {
    return { broadcast: async ({ keyId }) => rateLimits.keyChanged(keyId), close() {} };
  }
  const onChange = (change: KeyChange) => {
    cache.invalidate(change);
    rateLimits.keyChanged(change.keyId);
  };
  const { RedisKeyChanges } = await import("../ratelimit/redis/redis-key-changes.ts");
  const redis = new RedisKeyChanges({
    ...deps,
    access,
    replica: rateLimits.local.replica,
    onChange,
    onGap: () => cache.invalidateAll(),
  });
  metrics.gauge(
    "latchkey_key_changes_up",
    "Whether changes of keys on other replicas are heard of at once: 1; 0 while only LATCHKEY_CACHE_TTL_MS bounds them.",
    () => Number(redis.isUp),
  );
  return {
    broadcast(change) {
      rateLimits.keyChanged(change.keyId);
      return redis.broadcast(change);
    },
    close: () => redis.close(),
  };
}
