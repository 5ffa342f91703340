import type { Ambient } from "../ambient/ambient.ts";
import type { Settings } from "../config/settings.ts";
import type { WaitingRoom } from "../domain/waiting-room.ts";
import { Coordinator } from "../ratelimit/coordinator/coordinator.ts";
import type { OnRecall } from "../ratelimit/exchange/permit-channel.ts";
import type { RateLimiter } from "../ratelimit/limiter.ts";
import { limiterByMode } from "../ratelimit/limiter-by-mode.ts";
import { StrictLimiter } from "../ratelimit/strict/strict-limiter.ts";
import type { PermitEngine } from "../store/permit-ledger.ts";
import { type LocalLimits, startLocalLimits } from "./local-limits.ts";
import { redisAccessOf } from "./redis-access.ts";

export interface RateLimits {
  readonly limiter: RateLimiter;
  readonly local: LocalLimits;
  /** The key's limit was changed, or the key deleted. */
  keyChanged(keyId: string): void;
  /** Sends the last report, returns permits and saves windows. No permit may be taken afterwards. */
  stop(): Promise<void>;
}

/** Together with all other steps of a verification this stays below half a second. */
const permitTimeoutMs = 450;

export interface RateLimitsDeps extends Ambient {
  readonly settings: Settings;
  readonly permitLanes: readonly PermitEngine[];
  readonly waitingRoom: WaitingRoom;
}

/** Everything that rate limits need in a process that serves verifications, by its role. */
export async function startRateLimits(deps: RateLimitsDeps): Promise<RateLimits> {
  const { settings, permitLanes, metrics } = deps;
  const onRecall = (keyId: string) => strict.recall(keyId);
  const coordinators = await connectCoordinators(deps, onRecall);
  const redis = await connectRedis(deps);
  const local = startLocalLimits({ ...deps, hub: redis ?? coordinators?.asWindowHub() });
  const coordinator = coordinators ? undefined : createCoordinator(permitLanes, deps);
  const strict: StrictLimiter = new StrictLimiter({
    ...deps,
    channel: coordinators ?? (coordinator as Coordinator).join(onRecall),
    poolsMax: settings.windowsMax,
    timeoutMs: permitTimeoutMs,
  });
  metrics.gauge("latchkey_permits_held", "Permits of strict rate limits that this replica holds.", () => strict.held);
  for (const { address, link } of coordinators?.links ?? []) {
    const help = "Whether the coordinator of this address can be reached: 1 or 0.";
    metrics.gauge("latchkey_coordinator_up", help, () => Number(link.isUp), { address });
    const ledgerHelp = "Whether the coordinator of this address can be reached and its ledger answers it: 1 or 0.";
    metrics.gauge("latchkey_coordinator_ledger_up", ledgerHelp, () => Number(link.hasLedger), { address });
  }
  return {
    limiter: limiterByMode({ local: local.limiter, strict }),
    local,
    keyChanged: (keyId) => strict.keyChanged(keyId),
    async stop() {
      await Promise.all([local.stop(), strict.stop()]);
      await coordinator?.drained();
      redis?.close();
    },
  };
}

// Loaded only if used: the Redis client takes longer to load than everything else together.

async function connectCoordinators({ settings, clock, log }: RateLimitsDeps, onRecall: OnRecall) {
  if (settings.role !== "edge") return undefined;
  const { CoordinatorClient } = await import("../ratelimit/strict/coordinator-client.ts");
  const { coordinators, internalSecret: secret, internalCa: ca } = settings;
  return new CoordinatorClient(coordinators, { secret, ca, onRecall, clock, log });
}

async function connectRedis(deps: RateLimitsDeps) {
  const access = redisAccessOf(deps.settings);
  if (access === undefined) return undefined;
  const { RedisWindowHub } = await import("../ratelimit/redis/redis-window-hub.ts");
  return new RedisWindowHub({ ...deps, access });
}

export function createCoordinator(
  permitLanes: readonly PermitEngine[],
  ambient: Pick<Ambient, "clock" | "metrics">,
): Coordinator {
  const coordinator = new Coordinator(permitLanes, ambient);
  ambient.metrics.gauge(
    "latchkey_permit_ledger_silent_seconds",
    "Seconds since the permit ledger last answered. It is asked only when somebody wants permits.",
    () => coordinator.silentMs / 1000,
  );
  return coordinator;
}
