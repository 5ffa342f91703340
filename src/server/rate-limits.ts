import type { Ambient } from "../ambient/ambient.ts";
import type { Settings } from "../config/settings.ts";
import type { Core } from "../core/core.ts";
import { permitTimeoutMs } from "../domain/deadlines.ts";
import type { WaitingRoom } from "../domain/waiting-room.ts";
import type { InspectingLimiter } from "../ratelimit/limiter.ts";
import { limiterByMode } from "../ratelimit/limiter-by-mode.ts";
import { StrictLimiter } from "../ratelimit/strict/strict-limiter.ts";
import { type LocalLimits, startLocalLimits } from "./local-limits.ts";
import { redisAccessOf } from "./redis-access.ts";

export interface RateLimits {
  readonly limiter: InspectingLimiter;
  readonly local: LocalLimits;
  /** A limit of the key or owner was changed, or it was deleted: by the key's id, or the owner's counter. */
  holderChanged(holder: string): void;
  /** Sends the last report, returns permits and saves windows. No permit may be taken afterwards. */
  stop(): Promise<void>;
}

export interface RateLimitsDeps extends Ambient {
  readonly settings: Settings;
  readonly core: Pick<Core, "joinPermits" | "windows" | "pathMs">;
  readonly waitingRoom: WaitingRoom;
}

/** The rate limits of a front: local windows, and pools of permits that come from the core. */
export async function startRateLimits(deps: RateLimitsDeps): Promise<RateLimits> {
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
    local,
    holderChanged: (holder) => strict.holderChanged(holder),
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
