import type { KeyStore } from "./key-store.ts";
import type { RootKeyStore } from "./root-key-store.ts";
import type { UsageEngine } from "./usage-ledger.ts";

/** Everything that is kept. One contract suite holds every implementation to the same behaviour. */
export interface Store {
  readonly keys: KeyStore;
  readonly rootKeys: RootKeyStore;
  /** The counters. Lanes are independent of each other, and a key always goes to the same one: see `laneOf`. */
  readonly usageLanes: readonly UsageEngine[];
  /** Finishes what is under way and lets go of the data. */
  close(): Promise<void>;
}
