import type { Log } from "../ambient/log.ts";
import { andThen, type MaybePromise } from "../domain/maybe-promise.ts";
import type { WindowTable } from "../domain/window-table.ts";
import { fromWire } from "../link/wire-error.ts";
import type { Permit, RateLimiter } from "../ratelimit/limiter.ts";
import type { WindowListener } from "../ratelimit/local/window-counter.ts";
import type { KeyStore } from "../store/key-store.ts";
import type { UsageLedger } from "../store/usage-ledger.ts";
import type { MainThreadMethods } from "./methods.ts";

/** The main thread's services: there is one of each, for all threads. */
export interface MainThread {
  readonly keys: KeyStore;
  readonly usage: UsageLedger;
  readonly limiter: RateLimiter;
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
    create: (key, idempotency) => keys.create(key, idempotency),
    findKeptAnswer: (lookup, nowMs) => keys.findKeptAnswer(lookup, nowMs),
    findByDigest: (digest, options) => keys.findByDigest(digest, options),
    mutate: (keyId, mutation) => keys.mutate(keyId, mutation),
    spend: (keyId) => usage.spend(keyId),

    rowOf(keyId) {
      const slot = table.slotOf(keyId);
      return slot === undefined ? undefined : { slot, claim: table.claimOf(slot) };
    },
    windowsChanged(slots, urgentSlots) {
      for (const slot of slots) listener?.changed(slot, false);
      for (const slot of urgentSlots) listener?.changed(slot, true);
    },

    takeStrict: (keyId, rule) =>
      andThen(limiter.take(keyId, rule), (permit) => {
        const { outcome, limit, remaining, resetMs } = permit;
        if (outcome === "admitted") permits.set(++lastNumber, permit);
        return { outcome, limit, remaining, resetMs, number: lastNumber };
      }),
    commitStrict: (number) => removePermit(number).commit(),
    releaseStrict: (number) =>
      andThen(removePermit(number).release(), ({ limit, remaining, resetMs }) => ({ limit, remaining, resetMs })),
    peek: (keyId, rule) => limiter.peek(keyId, rule),

    refreshReadiness: () => mainThread.refreshReadiness(),

    log(level, message, fields, cause) {
      const said = { ...fields, thread };
      if (level === "error") log.error(message, cause && fromWire(cause), said);
      else log[level](message, said);
    },
  };
}
