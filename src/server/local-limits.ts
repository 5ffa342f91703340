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
import type { WindowMemory } from "../threads/methods.ts";

export interface LocalLimits {
  readonly limiter: LocalLimiter;
  readonly table: WindowTable;
  /** Is told which windows have changed; undefined if this replica is alone. */
  readonly listener: WindowListener | undefined;
  /** The shared memory of the windows; undefined with one thread. */
  readonly windowMemory: WindowMemory | undefined;
  /** This replica's name, unique among replicas. */
  readonly replica: string;
  /** Sends the last report to the other replicas and saves the open windows. No permit may be taken afterwards. */
  stop(): Promise<void>;
}

interface LocalLimitsDeps extends Ambient {
  readonly settings: Settings;
  readonly hub: WindowHub | undefined;
}

const tickMs = 100;
/** Every window is checked within this many ticks, so that an ended window soon frees its row. */
const sweepTicks = 20;
const sweepMin = 1000;

/** Local limits of this replica: restored from the last run, and synchronised with other replicas if there is a hub. */
export function startLocalLimits(deps: LocalLimitsDeps): LocalLimits {
  const { settings, hub, clock, random, metrics, log } = deps;
  const file = join(settings.dataDir, `windows-${settings.port}`);
  const saved = takeSaved(file, deps);
  const replica = saved?.replica ?? Buffer.from(random.bytes(9)).toString("base64url");
  const { windowsMax, freeWindowsMax: freeStandingMax } = settings;
  const windowMemory = settings.workers > 1 ? allocateWindowMemory(windowsMax + freeStandingMax) : undefined;
  const table = new WindowTable(windowsMax, {
    freeStandingMax,
    nextGen: numbersFrom(random),
    shared: windowMemory && { memory: windowMemory.rows, guard: new SharedRowGuard(windowMemory.guard) },
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
    // Jitter, so that the replicas do not all report at the same moment.
    const jitter = 0.8 + (0.4 * (random.bytes(1)[0] ?? 0)) / 255;
    if (!stopped) timer = setTimeout(() => void tick(), tickMs * jitter).unref();
  };
  timer = setTimeout(() => void tick(), tickMs).unref();

  return {
    limiter,
    table,
    listener: sync,
    windowMemory,
    replica,
    async stop() {
      stopped = true;
      clearTimeout(timer);
      await sync?.tick();
      save(file, { replica, windows: table.openWindows(clock.monotonicMs()) }, clock.nowMs(), log);
    },
  };
}

function allocateWindowMemory(slotsMax: number): WindowMemory {
  return {
    rows: new SharedArrayBuffer(bytesOfRows(slotsMax)),
    guard: new SharedArrayBuffer(bytesOfGuard(slotsMax)),
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
