import type { KeyStore } from "./key-store.ts";
import type { PermitEngine } from "./permit-ledger.ts";
import type { RootKeyStore } from "./root-key-store.ts";
import type { StoreHealth } from "./store-health.ts";
import type { UsageEngine } from "./usage-ledger.ts";

/** Everything that is kept. One contract suite holds every implementation to the same behaviour. */
export interface Store {
  readonly keys: KeyStore;
  readonly rootKeys: RootKeyStore;
  /** The counters. Lanes are independent of each other, and a key always goes to the same one: see `laneOf`. */
  readonly usageLanes: readonly UsageEngine[];
  /** The windows of strict limits, in lanes likewise. */
  readonly permitLanes: readonly PermitEngine[];
  /** Absent where the store can be used whenever it is open. */
  readonly health?: StoreHealth;
  /**
   * Removes what nobody will ask for again: kept answers that have expired by then, traces of processes that are gone.
   * Harmless at any time. Throws `Unavailable`.
   */
  tidy(nowMs: number): Promise<void>;
  /** Finishes what is under way and lets go of the data. */
  close(): Promise<void>;
}
