import type { Log } from "../ambient/log.ts";
import type { AtOnce } from "../domain/at-once.ts";
import type { RateLimitState } from "../domain/rate-limit.ts";
import type { Permit, RateLimiter } from "../ratelimit/limiter.ts";
import type { WindowListener } from "../ratelimit/local/window-counter.ts";
import type { KeyStore } from "../store/key-store.ts";
import type { UsageLedger } from "../store/usage-ledger.ts";
import type { HomeMethods, RemotePermitState, ServingMethods } from "./methods.ts";
import type { ThreadLink } from "./thread-link.ts";
import { toWire } from "./wire-error.ts";

/* The main thread's services, as a serving thread uses them. */

export type HomeLink = ThreadLink<ServingMethods, HomeMethods>;

export function remoteKeys(home: HomeLink): KeyStore {
  return {
    create: (key, idempotency) => home.ask("create", key, idempotency),
    findKeptAnswer: (lookup, nowMs) => home.ask("findKeptAnswer", lookup, nowMs),
    findByDigest: (digest, options) => home.ask("findByDigest", digest, options),
    mutate: (keyId, mutation) => home.ask("mutate", keyId, mutation),
  };
}

export function remoteUsage(home: HomeLink): UsageLedger {
  return { spend: (keyId) => home.ask("spend", keyId) };
}

export function remoteStrictLimiter(home: HomeLink): RateLimiter {
  return {
    take: async (keyId, rule) => new RemotePermit(home, await home.ask("takeStrict", keyId, rule)),
    look: (keyId, rule) => home.ask("look", keyId, rule),
  };
}

class RemotePermit implements Permit {
  readonly outcome: Permit["outcome"];
  readonly limit: number;
  readonly remaining: number;
  readonly resetMs: number;
  readonly #home: HomeLink;
  readonly #number: number;

  constructor(home: HomeLink, { outcome, limit, remaining, resetMs, number }: RemotePermitState) {
    this.outcome = outcome;
    this.limit = limit;
    this.remaining = remaining;
    this.resetMs = resetMs;
    this.#home = home;
    this.#number = number;
  }

  keep(): void {
    if (this.outcome === "admitted") this.#home.tell("keepStrict", this.#number);
  }

  giveBack(): AtOnce<RateLimitState> {
    return this.outcome === "admitted" ? this.#home.ask("giveBackStrict", this.#number) : this;
  }
}

/** Reports all windows that change in one turn of the event loop together. */
export function remoteListener(home: HomeLink): WindowListener {
  let changed = new Set<number>();
  let urgent = new Set<number>();
  const tell = () => {
    home.tell("windowsChanged", [...changed], [...urgent]);
    changed = new Set();
    urgent = new Set();
  };
  return {
    changed(slot, isUrgent) {
      if (changed.size === 0 && urgent.size === 0) setImmediate(tell);
      (isUrgent ? urgent : changed).add(slot);
    },
  };
}

export function remoteLog(home: HomeLink, debugEnabled: boolean): Log {
  return {
    debug(message, fields) {
      if (debugEnabled) home.tell("log", "debug", message, fields, undefined);
    },
    info: (message, fields) => home.tell("log", "info", message, fields, undefined),
    warn: (message, fields) => home.tell("log", "warn", message, fields, undefined),
    error: (message, cause, fields) => home.tell("log", "error", message, fields, toWire(cause)),
    debugEnabled,
  };
}
