import type { Ambient } from "../ambient/ambient.ts";
import type { Settings } from "../config/settings.ts";
import type { Change, ChangeAudience } from "../store/changes.ts";
import { redisAccessOf } from "./redis-access.ts";

interface ChangesDeps extends Pick<Ambient, "clock" | "log" | "metrics"> {
  readonly settings: Settings;
  /** Called for every change that another replica has made. */
  readonly onChange: (change: Change) => void;
  /** This replica's name, unique among replicas. */
  readonly replica: string;
}

/**
 * Sends changes to the other replicas and receives theirs, if there is a Redis. All of them also get each from the change
 * feed, a little later. A gauge shows whether Redis carries the messages.
 */
export async function connectChanges(deps: ChangesDeps): Promise<ChangeAudience & { close(): void }> {
  const access = redisAccessOf(deps.settings);
  if (access === undefined) return { async broadcast() {}, close() {} };
  const { RedisChanges } = await import("../ratelimit/redis/redis-changes.ts");
  const redis = new RedisChanges({ ...deps, access });
  const help = "1 while changes on other replicas are received immediately, 0 while only the change feed brings them.";
  deps.metrics.gauge("latchkey_key_changes_up", help, () => Number(redis.isUp));
  return redis;
}
