import { join } from "node:path";
import type { Clock } from "../ambient/clock.ts";
import type { Log } from "../ambient/log.ts";
import type { Metrics } from "../ambient/metrics.ts";
import type { Random } from "../ambient/random.ts";
import type { Settings } from "../config/settings.ts";
import { WindowTable } from "../domain/window-table.ts";
import { LocalLimiter } from "../ratelimit/local/local-limiter.ts";
import { type SavedWindows, saveWindows, takeSavedWindows } from "../ratelimit/local/saved-windows.ts";
import type { WindowHub } from "../ratelimit/local/window-hub.ts";
import { WindowSync } from "../ratelimit/local/window-sync.ts";

export interface LocalLimits {
  readonly limiter: LocalLimiter;
  /** The name of this replica among the others. */
  readonly replica: string;
  /** Tells the others for the last time and saves the windows that are open. Nothing may be taken any more. */
  stop(): Promise<void>;
}

const tickMs = 100;
/** Looks at every window within this many ticks: a window that is over keeps its place no longer. */
const sweepTicks = 20;
const sweepMin = 1000;

/** Local limits of this replica: as they were left, and kept in step with the others' where there is a hub. */
export function startLocalLimits(deps: {
  readonly settings: Settings;
  readonly hub: WindowHub | undefined;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly metrics: Metrics;
}): LocalLimits {
  const { settings, hub, clock, random, metrics, log } = deps;
  const file = join(settings.dataDir, `windows-${settings.port}`);
  const saved = takeSaved(file, deps);
  const replica = saved?.replica ?? Buffer.from(random.bytes(9)).toString("base64url");
  const table = new WindowTable(settings.windowsMax, { nextGen: numbersFrom(random) });
  for (const window of saved?.windows ?? []) table.restore(window, clock.monotonicMs());

  const sync = hub && new WindowSync({ table, hub, replica, clock, metrics });
  const limiter = new LocalLimiter(table, deps, sync);
  metrics.gauge("latchkey_rate_limit_windows", "Windows of local rate limits in memory.", () => table.size);
  if (hub) {
    const help = "Whether windows of local rate limits can be told to the other replicas: 1 or 0.";
    metrics.gauge("latchkey_rate_limit_sync_up", help, () => Number(hub.isReachable));
  }

  let stopped = false;
  let timer: NodeJS.Timeout;
  const tick = async () => {
    limiter.followWallClock();
    table.sweep(clock.monotonicMs(), Math.max(sweepMin, Math.ceil(table.size / sweepTicks)));
    await sync?.tick();
    // Not in step with the other replicas' ticks, which would all come at once.
    const jitter = 0.8 + (0.4 * (random.bytes(1)[0] ?? 0)) / 255;
    if (!stopped) timer = setTimeout(() => void tick(), tickMs * jitter).unref();
  };
  timer = setTimeout(() => void tick(), tickMs).unref();

  return {
    limiter,
    replica,
    async stop() {
      stopped = true;
      clearTimeout(timer);
      await sync?.tick();
      save(file, { replica, windows: table.openWindows(clock.monotonicMs()) }, clock.nowMs(), log);
    },
  };
}

/** What cannot be read is left behind: keys then begin new windows, which is better than no service. */
function takeSaved(file: string, { clock, log }: { clock: Clock; log: Log }): SavedWindows | undefined {
  try {
    return takeSavedWindows(file, clock.nowMs());
  } catch (error) {
    log.warn("the saved rate-limit windows could not be read", { reason: (error as Error).message });
    return undefined;
  }
}

function save(file: string, windows: SavedWindows, nowMs: number, log: Log): void {
  try {
    saveWindows(file, windows, nowMs);
  } catch (error) {
    log.warn("the rate-limit windows could not be saved: keys begin new ones", { reason: (error as Error).message });
  }
}

/** Numbers for windows: random in front, so that no two replicas come up with the same. */
function numbersFrom(random: Random): () => number {
  const [a = 0, b = 0, c = 0] = random.bytes(3);
  const first = ((a << 16) | (b << 8) | c) * 2 ** 28;
  let next = 0;
  return () => {
    next = (next + 1) % 2 ** 28;
    return first + next;
  };
}
