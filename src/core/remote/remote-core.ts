import type { Ambient } from "../../ambient/ambient.ts";
import { withTimeout } from "../../ambient/with-timeout.ts";
import { Deadline, stageTimeoutMs } from "../../domain/deadlines.ts";
import { Unavailable } from "../../domain/unavailable.ts";
import type { WaitingRoom } from "../../domain/waiting-room.ts";
import { notExecuted, type OnRecall, type PermitChannel } from "../../ratelimit/permit-channel.ts";
import type { ChangeFeed } from "../../store/change-feed.ts";
import type { Change } from "../../store/changes.ts";
import type { KeyLookup, OwnerLookup } from "../../store/key-lookup.ts";
import type { UsageLedger } from "../../store/usage-ledger.ts";
import type { Core } from "../core.ts";
import { fromWirePermits, NotExecuted, requireAnswer, toWireAsk } from "../wire.ts";
import { fromWireNews, plainPosition } from "../wire-feed.ts";
import type { CoordinatorLinkOptions } from "./coordinator-link.ts";
import { Coordinators } from "./coordinators.ts";
import type { LinkCredentials } from "./link-credentials.ts";
import { RemoteKeys } from "./remote-keys.ts";
import { RemoteManagement, type RemoteManagementDeps } from "./remote-management.ts";
import { RemoteUsage } from "./remote-usage.ts";
import { RemoteWindows } from "./remote-windows.ts";

export interface RemoteCoreOptions extends Pick<Ambient, "clock" | "log"> {
  readonly addresses: readonly string[];
  readonly credentials?: () => LinkCredentials;
  readonly waitingRoom: WaitingRoom;
  /** The answer to a look-up must not be remembered: it is older than this change. */
  readonly onOldAnswer: (change: Change) => void;
  /** Called with what a management call has changed. It is answered when this resolves. */
  readonly onChanged: RemoteManagementDeps["onChanged"];
  readonly onShed?: RemoteManagementDeps["onShed"];
  /** Called with changes that were just made: see `CoordinatorLinkOptions`. */
  readonly onAnnounced?: CoordinatorLinkOptions["onAnnounced"];
  /** Where the core is in the main process of this worker. It has deadlines of its own, and is lost only with the link. */
  readonly mainProcess?: MainProcess | undefined;
}

export interface MainProcess {
  /** For one stage of a verification: longer than the main process takes to fail. */
  readonly stageTimeoutMs: number;
  /** Whether the ledger is in the main process, and not behind a connection of it. */
  readonly hasLedger: boolean;
}

/** A coordinator answers with its next reading of the feed, which takes half a second or fails within one. */
const feedTimeoutMs = 1500;
const notInspected = () => new Unavailable("the window was not inspected in time");

/** A core behind coordinators: an edge needs nothing else. */
export class RemoteCore implements Core {
  readonly coordinators: Coordinators;
  readonly keys: KeyLookup & OwnerLookup;
  readonly usage: UsageLedger;
  readonly changes: ChangeFeed;
  readonly windows: RemoteWindows;
  readonly management: RemoteManagement;
  /**
   * Resolves when a coordinator with a ledger was reached for the first time, and all others were tried: edges that do not
   * know the same coordinators do not meet at one for a key.
   */
  readonly usable: Promise<void>;
  /** For one stage of a verification. */
  readonly #newDeadline: () => Deadline;
  readonly #mainProcess: MainProcess | undefined;
  #onRecall: OnRecall = () => {};

  constructor(options: RemoteCoreOptions) {
    const { addresses, waitingRoom, onOldAnswer, clock } = options;
    const { promise: usable, resolve: onUsable } = Promise.withResolvers<void>();
    this.usable = usable;
    const onRecall: OnRecall = (subject) => this.#onRecall(subject);
    const onStatusKnown = () => {
      if (coordinators.hasLedger && coordinators.links.every(({ link }) => link.isStatusKnown)) onUsable();
    };
    const coordinators = new Coordinators(addresses, { ...options, onRecall, onStatusKnown });
    this.coordinators = coordinators;
    this.#mainProcess = options.mainProcess;
    this.#newDeadline = () =>
      new Deadline(clock, this.#mainProcess?.stageTimeoutMs ?? stageTimeoutMs(coordinators.pathMs));
    const keys = new RemoteKeys({ coordinators, newDeadline: this.#newDeadline, onOldAnswer });
    this.keys = keys;
    this.usage = new RemoteUsage({ coordinators, waitingRoom, newDeadline: this.#newDeadline });
    this.windows = new RemoteWindows(coordinators);
    this.changes = {
      async read(since) {
        const value = since ? { since: plainPosition(since) } : {};
        const asked = coordinators.read("changes", { case: "feed", value });
        const deadline = new Deadline(clock, feedTimeoutMs + coordinators.pathMs);
        const received = await withTimeout(asked, deadline, () => new Unavailable("no news in time"));
        const news = fromWireNews(requireAnswer(received, "feed"));
        keys.onNews(news);
        return news;
      },
    };
    const newDeadline = (timeoutMs: number) => new Deadline(clock, timeoutMs);
    this.management = new RemoteManagement({ ...options, coordinators, newDeadline });
  }

  get pathMs(): number | undefined {
    return this.#mainProcess?.hasLedger ? undefined : this.coordinators.pathMs;
  }

  joinPermits(onRecall: OnRecall): PermitChannel {
    this.#onRecall = onRecall;
    return {
      exchange: async (subject, ask, options) => {
        try {
          return fromWirePermits(await this.coordinators.callOnce(subject, toWireAsk(subject, ask), options));
        } catch (error) {
          if (error instanceof NotExecuted) return notExecuted;
          throw error;
        }
      },
      inspect: async (subject) => {
        const asked = this.coordinators.read(subject, { case: "inspection", value: { subject } });
        return fromWirePermits(await withTimeout(asked, this.#newDeadline(), notInspected));
      },
      close() {},
    };
  }

  close(): void {
    this.coordinators.close();
  }
}
