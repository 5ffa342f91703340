import type { StoredCounter } from "../domain/explanation.ts";
import { keyOf } from "../domain/key.ts";
import { ownerOf } from "../domain/owner.ts";
import { nextRefillMs, type UsageCounter } from "../domain/usage.ts";
import type { Management } from "../store/management.ts";
import type { ReadHolders } from "../store/root-access.ts";
import { type AuthoriseDeps, createAuthorise, requirePermission } from "./authorise.ts";
import { managementWithin } from "./management-within.ts";

export interface ReadHoldersDeps extends AuthoriseDeps {
  readonly management: Management;
  /** The permission that `explainKey` needs. */
  readonly permission: string;
}

/** Reads what is stored, where it is stored. */
export function createReadHolders(deps: ReadHoldersDeps): ReadHolders {
  const authorise = createAuthorise(deps);
  return async function readHolders(rootKey, name) {
    const caller = await authorise(rootKey);
    requirePermission(caller, deps.permission);
    const management = managementWithin(deps.management, caller);
    const stored = await management.read(
      "keyId" in name ? { kind: "key", id: name.keyId } : { kind: "keyOfSecret", ...name, nowMs: deps.clock.nowMs() },
    );
    if (stored === undefined) return { counters: {} };
    const key = keyOf(stored);
    const owner = key.ownerId === undefined ? undefined : await management.read({ kind: "ownerOfKey", keyId: key.id });
    const counters = { key: toStoredCounter(stored.counter), owner: toStoredCounter(owner?.counter) };
    return { key, owner: owner && ownerOf(owner), counters };
  };
}

function toStoredCounter(counter: UsageCounter | undefined): StoredCounter | undefined {
  if (counter === undefined) return undefined;
  return { remaining: counter.remaining, nextRefillMs: nextRefillMs(counter) };
}
