import type { Ambient } from "../ambient/ambient.ts";
import type { Clock } from "../ambient/clock.ts";
import { measureEventLoopDelay } from "../ambient/event-loop-delay.ts";
import type { AdjustableLog } from "../ambient/log.ts";
import { createMetrics } from "../ambient/metrics.ts";
import type { Environment, Settings } from "../config/settings.ts";
import type { MainProcess } from "../core/remote/remote-core.ts";
import type { Secret } from "../domain/secret.ts";
import { WaitingRoom } from "../domain/waiting-room.ts";
import { LiveSettings } from "./live-settings.ts";
import { Teardown } from "./teardown.ts";

export interface RunningServer {
  readonly port: number;
  readonly internalPort: number;
  /** Resolves when requests can be answered, with the root key if one was just generated; rejects if they never can be. */
  readonly ready: Promise<Secret | undefined>;
  /** Reads the files of settings again, now. Resolves to whether anything has changed, when it is in force. */
  reload(): Promise<boolean>;
  /** Resolves when all requests under way are answered and all writes are done. */
  stop(): Promise<void>;
}

export interface ServerOptions extends Pick<Ambient, "clock" | "random"> {
  readonly log: AdjustableLog;
  readonly settings: Settings;
  /** What the settings were read from: its files are read again while the process runs. Absent: they are not. */
  readonly environment?: Environment;
  /** This process cannot use its store any more; only a new process can continue. */
  readonly onFatal: (cause: unknown) => void;
  /** Replaces the database's clock in tests. */
  readonly ledgerClock?: Pick<Clock, "nowMs">;
}

/** What the parts of every role need. Every part that is started is added to `teardown`. */
export interface StartOptions extends ServerOptions, Readonly<ReturnType<typeof createProcessParts>> {
  /** In a worker: its number, from 1 on. */
  readonly worker?: number;
  /** In a worker whose core is in its main process. */
  readonly mainProcess?: MainProcess | undefined;
}

/** What every process of the service has, be it the main one or a worker. */
export function createProcessParts({ settings, log }: Pick<ServerOptions, "settings" | "log">, name: string) {
  const metrics = createMetrics(name === "main" ? {} : { worker: name });
  metrics.addProcessMetrics();
  const waitingRoom = new WaitingRoom(settings.callsMax, () => metrics.shed("call"));
  const live = new LiveSettings(settings);
  live.follow(({ callsMax, logLevel }) => {
    waitingRoom.resize(callsMax);
    log.setLevel(logLevel);
  });
  const teardown = new Teardown(log);
  teardown.add("event loop delay", measureEventLoopDelay(name, metrics));
  return { metrics, waitingRoom, live, teardown };
}
