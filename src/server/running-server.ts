import type { Ambient } from "../ambient/ambient.ts";
import type { Clock } from "../ambient/clock.ts";
import type { MetricsRegistry } from "../ambient/metrics.ts";
import type { Settings } from "../config/settings.ts";
import type { Secret } from "../domain/secret.ts";
import type { WaitingRoom } from "../domain/waiting-room.ts";
import type { Teardown } from "./teardown.ts";

export interface RunningServer {
  readonly port: number;
  readonly internalPort: number;
  /** Resolves when requests can be answered, with the root key if one was just generated; rejects if they never can be. */
  readonly ready: Promise<Secret | undefined>;
  /** Resolves when all requests under way are answered and all writes are done. */
  stop(): Promise<void>;
}

export interface ServerOptions extends Pick<Ambient, "clock" | "random" | "log"> {
  readonly settings: Settings;
  /** This process cannot use its store any more; only a new process can continue. */
  readonly onFatal: (cause: unknown) => void;
  /** Replaces the database's clock in tests. */
  readonly ledgerClock?: Pick<Clock, "nowMs">;
}

/** What the parts of every role need. */
export interface StartOptions extends ServerOptions {
  readonly metrics: MetricsRegistry;
  readonly waitingRoom: WaitingRoom;
  /** Every part that is started is added to it. */
  readonly teardown: Teardown;
}
