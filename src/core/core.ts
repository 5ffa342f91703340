import type { WindowHub } from "../ratelimit/local/window-hub.ts";
import type { OnRecall, PermitChannel } from "../ratelimit/permit-channel.ts";
import type { ChangeFeed } from "../store/change-feed.ts";
import type { KeyLookup, OwnerLookup } from "../store/key-lookup.ts";
import type { UsageLedger } from "../store/usage-ledger.ts";

/**
 * What a front needs and may exist only once: keys, counters, permits, changes. A front (public API, key cache, permit
 * pools, local windows) reaches its core in the process, or over streams to coordinators. Every call may reject with
 * `Unavailable`.
 */
export interface Core {
  readonly keys: KeyLookup & OwnerLookup;
  readonly usage: UsageLedger;
  readonly changes: ChangeFeed;
  /** Connects this front's permit pools. */
  joinPermits(onRecall: OnRecall): PermitChannel;
  /** Where local windows of several fronts are merged, if the core does that. */
  readonly windows: WindowHub | undefined;
  /** The round trip from the front to the ledger, as last measured. Undefined: the ledger is in this process. */
  readonly pathMs: number | undefined;
}
