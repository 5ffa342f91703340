import type { ChangeFeed } from "./change-feed.ts";
import type { KeyLookup, OwnerLookup } from "./key-lookup.ts";
import type { Management } from "./management.ts";
import type { PermitEngine } from "./permit-ledger.ts";
import type { RootKeyStore } from "./root-key-store.ts";
import type { StoreHealth } from "./store-health.ts";
import type { UsageEngine } from "./usage-ledger.ts";

/** What is no longer kept. Absent: all of it is. */
export interface TidyBounds {
  readonly eventsBeforeMs?: number | undefined;
  readonly readings?: ReadingBounds | undefined;
}

/** One reading a day is kept of those before the first bound, and none of those before the second. */
export interface ReadingBounds {
  readonly hoursBeforeMs: number;
  readonly daysBeforeMs: number;
}

/** All stored data. One contract suite tests every implementation for the same behaviour. */
export interface Store {
  readonly keys: KeyLookup & OwnerLookup;
  readonly management: Management;
  readonly rootKeys: RootKeyStore;
  /** What every change of a key or of root keys adds to. */
  readonly changes: ChangeFeed;
  /** The counters. Lanes are independent of each other; a key always uses the same lane, see `laneOf`. */
  readonly usageLanes: readonly UsageEngine[];
  /** The windows of strict limits, in lanes too. */
  readonly permitLanes: readonly PermitEngine[];
  /** The round trip to the database, as last measured, in milliseconds. Absent: the store is in this process. */
  readonly roundTripMs?: () => number;
  /** Absent if the store can always be used while it is open. */
  readonly health?: StoreHealth;
  /**
   * Deletes what is no longer needed: expired idempotent answers, secrets that have ended, old changes of the feed, rows of
   * processes that have ended, and events and readings of before the bounds. Safe at any time. Throws `Unavailable`.
   */
  tidy(nowMs: number, bounds?: TidyBounds): Promise<void>;
  /** Finishes the work under way and releases the data. */
  close(): Promise<void>;
}
