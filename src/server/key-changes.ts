import type { Ambient } from "../ambient/ambient.ts";
import type { Settings } from "../config/settings.ts";
import type { KeyCache, KeyChange, KeyChanges } from "../store/key-changes.ts";
import { redisAccessOf } from "./redis-access.ts";

interface KeyChangesDeps extends Pick<Ambient, "clock" | "log" | "metrics"> {
  readonly settings: Settings;
  readonly caches: readonly KeyCache[];
  /** Called for every change, also for those of this replica. */
  readonly onKeyChanged: (keyId: string) => void;
  /** This replica's name, unique among replicas. */
  readonly replica: string;
}

/**
 * Updates this replica's permits when a key changes here, and tells the other replicas if there is a Redis. All of them
 * also learn of it from the change feed, a little later. A gauge shows whether Redis carries the messages.
 */
export async function connectKeyChanges(deps: KeyChangesDeps): Promise<KeyChanges & { close(): void }> {
  const { settings, caches, onKeyChanged, replica, metrics } = deps;
  const access = redisAccessOf(settings);
  if (access === undefined) {
    return { broadcast: async ({ keyId }) => onKeyChanged(keyId), close() {} };
  }
  const onChange = (change: KeyChange) => {
    for (const cache of caches) cache.invalidate(change);
    onKeyChanged(change.keyId);
  };
  const { RedisKeyChanges } = await import("../ratelimit/redis/redis-key-changes.ts");
  const redis = new RedisKeyChanges({ ...deps, access, replica, onChange });
  metrics.gauge(
    "latchkey_key_changes_up",
    "Whether changes of keys on other replicas are heard of at once: 1; 0 while only the change feed tells them.",
    () => Number(redis.isUp),
  );
  return {
    broadcast(change) {
      onKeyChanged(change.keyId);
      return redis.broadcast(change);
    },
    close: () => redis.close(),
  };
}
