import type { Log } from "../ambient/log.ts";
import { andThen, type MaybePromise } from "../domain/maybe-promise.ts";
import { Secret } from "../domain/secret.ts";
import type { WindowTable } from "../domain/window-table.ts";
import { fromWire } from "../link/wire-error.ts";
import type { InspectingLimiter, Permit } from "../ratelimit/limiter.ts";
import type { WindowListener } from "../ratelimit/local/window-counter.ts";
import type { KeyLookup, OwnerLookup } from "../store/key-lookup.ts";
import type { CheckRootKey, ReadHolders } from "../store/root-access.ts";
import type { UsageLedger } from "../store/usage-ledger.ts";
import type { MainThreadMethods } from "./methods.ts";

/** The main thread's services: there is one of each, for all threads. */
export interface MainThread {
  readonly keys: KeyLookup & OwnerLookup;
  readonly checkRootKey: CheckRootKey;
  readonly readHolders: ReadHolders;
  readonly carryOut: MainThreadMethods["carryOut"];
  readonly usage: UsageLedger;
  readonly limiter: InspectingLimiter;
  readonly table: WindowTable;
  readonly listener: WindowListener | undefined;
  readonly refreshReadiness: () => MaybePromise<void>;
  readonly log: Log;
}

/** Answers the calls of one serving thread. */
export function createMainThreadMethods(mainThread: MainThread, thread: number): MainThreadMethods {
  const { keys, usage, limiter, table, listener, log } = mainThread;
  /** Permits admitted for the thread that it has neither used nor given back yet. */
  const permits = new Map<number, Permit>();
  let lastNumber = 0;
  const removePermit = (number: number): Permit => {
    const permit = permits.get(number) as Permit;
    permits.delete(number);
    return permit;
  };

  return {
    findByDigest: (digest, options) => keys.findByDigest(digest, options),
    findOwner: (ownerId) => keys.findOwner(ownerId),
    check: (presented) => mainThread.checkRootKey(new Secret(presented)),
    carryOut: (call, isRead) => mainThread.carryOut(call, isRead),
    readHolders: (rootKey, name) => mainThread.readHolders(new Secret(rootKey), name),
    spend: (counters, cost) => usage.spend(counters, cost),

    rowOf(subject, apiId) {
      const slot = table.slotOf(subject, apiId);
      return slot === undefined ? undefined : { slot, claim: table.claimOf(slot) };
    },
    windowsChanged(slots, urgentSlots) {
      for (const slot of slots) listener?.changed(slot, false);
      for (const slot of urgentSlots) listener?.changed(slot, true);
    },

    takeStrict: (subject, rule, cost, apiId) =>
      andThen(limiter.take(subject, rule, cost, apiId), (permit) => {
        const { outcome, limit, remaining, resetMs } = permit;
        if (outcome === "admitted") permits.set(++lastNumber, permit);
        return { outcome, limit, remaining, resetMs, number: lastNumber };
      }),
    commitStrict: (number) => removePermit(number).commit(),
    releaseStrict: (number) =>
      andThen(removePermit(number).release(), ({ limit, remaining, resetMs }) => ({ limit, remaining, resetMs })),
    peek: (subject, rule) => limiter.peek(subject, rule),
    inspect: (subject, rule, cost) => limiter.inspect(subject, rule, cost),

    refreshReadiness: () => mainThread.refreshReadiness(),

    log(level, message, fields, cause) {
      const said = { ...fields, thread };
      if (level === "error") log.error(message, cause && fromWire(cause), said);
      else log[level](message, said);
    },
  };
}
