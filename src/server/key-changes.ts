import type { Clock } from "../ambient/clock.ts";
import type { Log } from "../ambient/log.ts";
import type { Metrics } from "../ambient/metrics.ts";
import type { Secret } from "../domain/secret.ts";
import { RedisKeyChanges } from "../ratelimit/redis/redis-key-changes.ts";
import type { CachedKeyStore } from "../store/cached-key-store.ts";

/** Lets this replica's memory of keys follow what the others change, and says in the metrics whether it does. */
export function connectKeyChanges(
  url: Secret,
  keys: CachedKeyStore,
  replica: string,
  ambient: { readonly clock: Clock; readonly log: Log; readonly metrics: Metrics },
): RedisKeyChanges {
  const changes = new RedisKeyChanges({
    ...ambient,
    url,
    replica,
    onChange: (change) => keys.forget(change),
    onGap: () => keys.forgetAll(),
  });
  ambient.metrics.gauge(
    "latchkey_key_changes_up",
    "Whether changes of keys on other replicas are heard of at once: 1; 0 while only LATCHKEY_CACHE_TTL_MS bounds them.",
    () => Number(changes.isUp),
  );
  return changes;
}
