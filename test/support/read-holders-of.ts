import type { Clock } from "../../src/ambient/clock.ts";
import { createMetrics } from "../../src/ambient/metrics.ts";
import { unlimitedRootKey } from "../../src/domain/root-key.ts";
import type { Management } from "../../src/store/management.ts";
import type { ReadHolders } from "../../src/store/root-access.ts";
import { createReadHolders } from "../../src/usecases/read-holders.ts";

/** What explanations read of a store, whatever root key they come with. */
export function readHoldersOf(management: Management, clock: Clock): ReadHolders {
  const checkRootKey = () => unlimitedRootKey("root_test");
  return createReadHolders({ clock, metrics: createMetrics(), management, checkRootKey, permission: "keys.read" });
}
