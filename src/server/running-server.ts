import type { Ambient } from "../ambient/ambient.ts";
import type { Clock } from "../ambient/clock.ts";
import type { AdjustableLog } from "../ambient/log.ts";
import type { MetricsRegistry } from "../ambient/metrics.ts";
import type { Environment, Settings } from "../config/settings.ts";
import type { Secret } from "../domain/secret.ts";
import type { WaitingRoom } from "../domain/waiting-room.ts";
import type { LiveSettings } from "./live-settings.ts";
import type { Teardown } from "./teardown.ts";

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

/** A server of any role. */
export type StartedServer = Omit<RunningServer, "reload">;

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

/** What the parts of every role need. */
export interface StartOptions extends ServerOptions {
  readonly live: LiveSettings;
  readonly metrics: MetricsRegistry;
  readonly waitingRoom: WaitingRoom;
  /** Every part that is started is added to it. */
  readonly teardown: Teardown;
}
