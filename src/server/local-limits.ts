import { join } from "node:path";
import type { Ambient } from "../ambient/ambient.ts";
import type { Log } from "../ambient/log.ts";
import type { Settings } from "../config/settings.ts";
import { WindowTable } from "../domain/window-table.ts";
import { LocalLimiter, windowNumbersFrom } from "../ratelimit/local/local-limiter.ts";
import { type SavedWindows, saveWindows, takeSavedWindows } from "../ratelimit/local/saved-windows.ts";
import type { WindowHub } from "../ratelimit/local/window-hub.ts";
import { WindowSync } from "../ratelimit/local/window-sync.ts";

interface LocalLimitsDeps extends Ambient {
  readonly settings: Settings;
  readonly hub: WindowHub | undefined;
  /** The number of this worker, from 1 on. Each saves its own windows. */
  readonly worker?: number | undefined;
}

const tickMs = 100;
/** Every window is checked within this many ticks, so that an ended window soon frees its row. */
const sweepTicks = 20;
const sweepMin = 1000;

/** Local limits of this replica: restored from the last run, and synchronised with other replicas if there is a hub. */
export function startLocalLimits(deps: LocalLimitsDeps) {
  const { settings, hub, clock, random, metrics, log } = deps;
  // The first worker goes on with the windows of a process without workers.
  const suffix = (deps.worker ?? 1) > 1 ? `-${deps.worker}` : "";
  const file = join(settings.dataDir, `windows-${settings.port}${suffix}`);
  const saved = takeSaved(file, deps);
  const replica = saved?.replica ?? Buffer.from(random.bytes(9)).toString("base64url");
  const { windowsMax, freeWindowsMax: freeStandingMax } = settings;
  const table = new WindowTable(windowsMax, { freeStandingMax, nextGen: windowNumbersFrom(random) });
  for (const window of saved?.windows ?? []) table.restore(window, clock.monotonicMs());

  const sync = hub && new WindowSync({ table, hub, replica, clock, metrics, log });
  const limiter = new LocalLimiter(table, deps, sync);
  metrics.gauge("latchkey_rate_limit_windows", "Windows of local rate limits in memory.", () => table.size);
  if (sync) {
    const help = "Whether all windows of local rate limits can be reported to the other replicas: 1 or 0.";
    metrics.gauge("latchkey_rate_limit_sync_up", help, () => Number(sync.isUp));
  }

  let stopped = false;
  let timer: NodeJS.Timeout;
  const tick = async () => {
    limiter.followWallClock();
    table.sweep(clock.monotonicMs(), Math.max(sweepMin, Math.ceil(table.size / sweepTicks)));
    await sync?.tick();
    // Jitter, so that the replicas do not all report at the same moment.
    const jitter = 0.8 + (0.4 * (random.bytes(1)[0] ?? 0)) / 255;
    if (!stopped) timer = setTimeout(() => void tick(), tickMs * jitter).unref();
  };
  timer = setTimeout(() => void tick(), tickMs).unref();

  return {
    limiter,
    /** This replica's name, unique among replicas. */
    replica,
    /** Sends the last report to the other replicas and saves the open windows. No permit may be taken afterwards. */
    async stop() {
      stopped = true;
      clearTimeout(timer);
      await sync?.tick();
      save(file, { replica, windows: table.openWindows(clock.monotonicMs()) }, clock.nowMs(), log);
    },
  };
}

/** An unreadable file is ignored: keys then begin new windows, which is better than no service. */
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
