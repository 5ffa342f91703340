import type { AdjustableLog, LogLevel } from "../ambient/log.ts";
import type { MaybePromise } from "../domain/maybe-promise.ts";
import type { RateLimitState } from "../domain/rate-limit.ts";
import { toWire } from "../link/wire-error.ts";
import type { InspectingLimiter, Permit } from "../ratelimit/limiter.ts";
import type { WindowListener } from "../ratelimit/local/window-counter.ts";
import type { KeyLookup, OwnerLookup } from "../store/key-lookup.ts";
import type { CheckRootKey, ReadHolders } from "../store/root-access.ts";
import type { UsageLedger } from "../store/usage-ledger.ts";
import type { MainThreadMethods, RemotePermitState, ServingMethods } from "./methods.ts";
import type { ThreadLink } from "./thread-link.ts";

/* The main thread's services, as a serving thread uses them. */

export type MainThreadLink = ThreadLink<ServingMethods, MainThreadMethods>;

export function remoteKeys(mainThread: MainThreadLink): KeyLookup & OwnerLookup {
  return {
    findByDigest: (digest, options) => mainThread.ask("findByDigest", digest, options),
    findOwner: (ownerId) => mainThread.ask("findOwner", ownerId),
  };
}

/** The root key that was presented is sent each time: this thread cannot judge it. */
export function remoteRootKeys(mainThread: MainThreadLink): { check: CheckRootKey; readHolders: ReadHolders } {
  return {
    check: (presented) => mainThread.ask("check", presented.reveal()),
    readHolders: (rootKey, name) => mainThread.ask("readHolders", rootKey.reveal(), name),
  };
}

export function remoteUsage(mainThread: MainThreadLink): UsageLedger {
  return { spend: (counters, cost) => mainThread.ask("spend", counters, cost) };
}

export function remoteStrictLimiter(mainThread: MainThreadLink): InspectingLimiter {
  return {
    take: async (subject, rule, cost = 1, apiId) =>
      new RemotePermit(mainThread, await mainThread.ask("takeStrict", subject, rule, cost, apiId)),
    peek: (subject, rule) => mainThread.ask("peek", subject, rule),
    inspect: (subject, rule, cost) => mainThread.ask("inspect", subject, rule, cost),
  };
}

class RemotePermit implements Permit {
  readonly outcome: Permit["outcome"];
  readonly limit: number;
  readonly remaining: number;
  readonly resetMs: number;
  readonly #mainThread: MainThreadLink;
  readonly #number: number;

  constructor(mainThread: MainThreadLink, { outcome, limit, remaining, resetMs, number }: RemotePermitState) {
    this.outcome = outcome;
    this.limit = limit;
    this.remaining = remaining;
    this.resetMs = resetMs;
    this.#mainThread = mainThread;
    this.#number = number;
  }

  commit(): void {
    if (this.outcome === "admitted") this.#mainThread.notify("commitStrict", this.#number);
  }

  release(): MaybePromise<RateLimitState> {
    return this.outcome === "admitted" ? this.#mainThread.ask("releaseStrict", this.#number) : this;
  }
}

/** Reports all windows that change in one turn of the event loop together. */
export function remoteListener(mainThread: MainThreadLink): WindowListener {
  let changed = new Set<number>();
  let urgent = new Set<number>();
  const notify = () => {
    mainThread.notify("windowsChanged", [...changed], [...urgent]);
    changed = new Set();
    urgent = new Set();
  };
  return {
    changed(slot, isUrgent) {
      if (changed.size === 0 && urgent.size === 0) setImmediate(notify);
      (isUrgent ? urgent : changed).add(slot);
    },
  };
}

/** Debug lines are left out here, all others in the main thread. */
export function remoteLog(mainThread: MainThreadLink, level: LogLevel): AdjustableLog {
  let debugEnabled = level === "debug";
  return {
    debug(message, fields) {
      if (debugEnabled) mainThread.notify("log", "debug", message, fields, undefined);
    },
    info: (message, fields) => mainThread.notify("log", "info", message, fields, undefined),
    warn: (message, fields) => mainThread.notify("log", "warn", message, fields, undefined),
    error: (message, cause, fields) => mainThread.notify("log", "error", message, fields, toWire(cause)),
    get debugEnabled() {
      return debugEnabled;
    },
    setLevel(next) {
      debugEnabled = next === "debug";
    },
  };
}
