import type { Log } from "../ambient/log.ts";
import { Forbidden } from "../domain/forbidden.ts";
import { andThen, type MaybePromise } from "../domain/maybe-promise.ts";
import { RootKeyRefused } from "../domain/root-key-refused.ts";
import { Secret } from "../domain/secret.ts";
import type { WindowTable } from "../domain/window-table.ts";
import { fromWire } from "../link/wire-error.ts";
import type { InspectingLimiter, Permit } from "../ratelimit/limiter.ts";
import type { WindowListener } from "../ratelimit/local/window-counter.ts";
import type { KeyLookup, OwnerLookup } from "../store/key-lookup.ts";
import type { RootAccess } from "../store/root-access.ts";
import type { UsageLedger } from "../store/usage-ledger.ts";
import type { IfAllowed, MainThreadMethods } from "./methods.ts";

/** The main thread's services: there is one of each, for all threads. */
export interface MainThread {
  readonly keys: KeyLookup & OwnerLookup;
  readonly rootAccess: RootAccess;
  readonly usage: UsageLedger;
  readonly limiter: InspectingLimiter;
  readonly table: WindowTable;
  readonly listener: WindowListener | undefined;
  readonly refreshReadiness: () => MaybePromise<void>;
  readonly log: Log;
}

/** Answers the calls of one serving thread. */
export function createMainThreadMethods(mainThread: MainThread, thread: number): MainThreadMethods {
  const { keys, rootAccess, usage, limiter, table, listener, log } = mainThread;
  const manage = (rootKey: string) => rootAccess.manage(new Secret(rootKey));
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
    check: (presented) => rootAccess.check(new Secret(presented)),
    change: (rootKey, ...args) => ifAllowed(manage(rootKey).change(...args)),
    read: (rootKey, query) => ifAllowed(manage(rootKey).read(query)),
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

async function ifAllowed<Answer>(answering: Promise<Answer>): Promise<IfAllowed<Answer>> {
  try {
    return { isAllowed: true, answer: await answering };
  } catch (error) {
    if (error instanceof RootKeyRefused) return { isAllowed: false };
    if (error instanceof Forbidden) return { isAllowed: false, forbidden: error.message };
    throw error;
  }
}
