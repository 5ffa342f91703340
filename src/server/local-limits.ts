import { join } from "node:path";
import type { Ambient } from "../ambient/ambient.ts";
import type { Log } from "../ambient/log.ts";
import type { Settings } from "../config/settings.ts";
import { bytesOfRows } from "../domain/window-rows.ts";
import { WindowTable } from "../domain/window-table.ts";
import { LocalLimiter } from "../ratelimit/local/local-limiter.ts";
import { type SavedWindows, saveWindows, takeSavedWindows } from "../ratelimit/local/saved-windows.ts";
import { bytesOfGuard, SharedRowGuard } from "../ratelimit/local/shared-row-guard.ts";
import type { WindowListener } from "../ratelimit/local/window-counter.ts";
import type { WindowHub } from "../ratelimit/local/window-hub.ts";
import { numbersFrom } from "../ratelimit/local/window-numbers.ts";
import { WindowSync } from "../ratelimit/local/window-sync.ts";
import type { SharedWindows } from "../threads/methods.ts";

export interface LocalLimits {
  readonly limiter: LocalLimiter;
  readonly table: WindowTable;
  /** Who wants to hear of changed windows; undefined where this replica is alone. */
  readonly listener: WindowListener | undefined;
  /** The memory of the windows, where several threads count in them. */
  readonly shared: SharedWindows | undefined;
  /** The name of this replica among the others. */
  readonly replica: string;
  /** Tells the others for the last time and saves the windows that are open. Nothing may be taken any more. */
  stop(): Promise<void>;
}

interface LocalLimitsDeps extends Ambient {
  readonly settings: Settings;
  readonly hub: WindowHub | undefined;
}

const tickMs = 100;
/** Looks at every window within this many ticks: a window that is over keeps its place no longer. */
const sweepTicks = 20;
const sweepMin = 1000;

/** Local limits of this replica: as they were left, and kept in step with the others' where there is a hub. */
export function startLocalLimits(deps: LocalLimitsDeps): LocalLimits {
  const { settings, hub, clock, random, metrics, log } = deps;
  const file = join(settings.dataDir, `windows-${settings.port}`);
  const saved = takeSaved(file, deps);
  const replica = saved?.replica ?? Buffer.from(random.bytes(9)).toString("base64url");
  const shared = settings.workers > 1 ? shareWindows(settings.windowsMax) : undefined;
  const table = new WindowTable(settings.windowsMax, {
    nextGen: numbersFrom(random),
    shared: shared && { memory: shared.rows, guard: new SharedRowGuard(shared.guard) },
  });
  for (const window of saved?.windows ?? []) table.restore(window, clock.monotonicMs());

  const sync = hub && new WindowSync({ table, hub, replica, clock, metrics, log });
  const limiter = new LocalLimiter(table, deps, sync);
  metrics.gauge("latchkey_rate_limit_windows", "Windows of local rate limits in memory.", () => table.size);
  if (sync) {
    const help = "Whether all windows of local rate limits can be told to the other replicas: 1 or 0.";
    metrics.gauge("latchkey_rate_limit_sync_up", help, () => Number(sync.isUp));
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
    table,
    listener: sync,
    shared,
    replica,
    async stop() {
      stopped = true;
      clearTimeout(timer);
      await sync?.tick();
      save(file, { replica, windows: table.openWindows(clock.monotonicMs()) }, clock.nowMs(), log);
    },
  };
}

function shareWindows(slotsMax: number): SharedWindows {
  return {
    rows: new SharedArrayBuffer(bytesOfRows(slotsMax)),
    guard: new SharedArrayBuffer(bytesOfGuard(slotsMax)),
  };
}

/** What cannot be read is left behind: keys then begin new windows, which is better than no service. */
function takeSaved(file: string, { clock, log }: Pick<Ambient, "clock" | "log">): SavedWindows | undefined {
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
