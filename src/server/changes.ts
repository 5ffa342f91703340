import type { Ambient } from "../ambient/ambient.ts";
import type { Settings } from "../config/settings.ts";
import type { Change, ChangeAudience, ChangeCache } from "../store/changes.ts";
import { redisAccessOf } from "./redis-access.ts";

interface ChangesDeps extends Pick<Ambient, "clock" | "log" | "metrics"> {
  readonly settings: Settings;
  readonly caches: readonly ChangeCache[];
  /** Called for every change, also for those of this replica. */
  readonly onChange: (change: Change) => void;
  /** This replica's name, unique among replicas. */
  readonly replica: string;
}

/**
 * Acts on changes that are made here, and tells the other replicas if there is a Redis. All of them also learn of it from
 * the change feed, a little later. A gauge shows whether Redis carries the messages.
 */
export async function connectChanges(deps: ChangesDeps): Promise<ChangeAudience & { close(): void }> {
  const { settings, caches, onChange, replica, metrics } = deps;
  const access = redisAccessOf(settings);
  if (access === undefined) return { broadcast: async (change) => onChange(change), close() {} };
  const onHeard = (change: Change) => {
    for (const cache of caches) cache.invalidate(change);
    onChange(change);
  };
  const { RedisChanges } = await import("../ratelimit/redis/redis-changes.ts");
  const redis = new RedisChanges({ ...deps, access, replica, onChange: onHeard });
  metrics.gauge(
    "latchkey_key_changes_up",
    "Whether changes on other replicas are heard of at once: 1; 0 while only the change feed tells them.",
    () => Number(redis.isUp),
  );
  return {
    broadcast(change) {
      onChange(change);
      return redis.broadcast(change);
    },
    close: () => redis.close(),
  };
}
