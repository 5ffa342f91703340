import type { Core } from "../core/core.ts";
import { permitTimeoutMs } from "../domain/deadlines.ts";
import { counterOfOwner } from "../domain/subject.ts";
import { limiterByMode } from "../ratelimit/limiter.ts";
import { StrictLimiter } from "../ratelimit/strict/strict-limiter.ts";
import type { Change } from "../store/changes.ts";
import { startLocalLimits } from "./local-limits.ts";
import { redisAccessOf } from "./redis-access.ts";
import type { StartOptions } from "./running-server.ts";

type RateLimitsDeps = StartOptions & { readonly core: Core };

/** The rate limits of a front: local windows, and pools of permits that come from the core. */
export async function startRateLimits(deps: RateLimitsDeps) {
  const { settings, core, metrics } = deps;
  const redis = await connectRedis(deps);
  const local = startLocalLimits({ ...deps, hub: redis ?? core.windows });
  const strict: StrictLimiter = new StrictLimiter({
    ...deps,
    channel: core.joinPermits((subject) => strict.recall(subject)),
    poolsMax: settings.windowsMax,
    freeStandingMax: settings.freeWindowsMax,
    timeoutMs: () => permitTimeoutMs(core.pathMs),
  });
  metrics.gauge("latchkey_permits_held", "Permits of strict rate limits that this replica holds.", () => strict.held);
  return {
    limiter: limiterByMode({ local: local.limiter, strict }),
    /** This replica's name, unique among replicas. */
    replica: local.replica,
    /** A limit of the key or owner may have been changed. */
    invalidate(change: Change) {
      if (change.kind === "key") strict.holderChanged(change.keyId);
      if (change.kind === "owner") strict.holderChanged(counterOfOwner(change.ownerId));
    },
    /** Without knowing the holder there is nothing to do: the ledger has the limits that are in force. */
    invalidateAll() {},
    newsIsCurrent() {},
    /** Sends the last report, returns permits and saves windows. No permit may be taken afterwards. */
    async stop() {
      await Promise.all([local.stop(), strict.stop()]);
      redis?.close();
    },
  };
}

// Loaded only if used: the Redis client takes longer to load than everything else together.
async function connectRedis(deps: RateLimitsDeps) {
  const access = redisAccessOf(deps.settings);
  if (access === undefined) return undefined;
  const { RedisWindowHub } = await import("../ratelimit/redis/redis-window-hub.ts");
  return new RedisWindowHub({ ...deps, access });
}
