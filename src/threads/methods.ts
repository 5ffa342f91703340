import type { LogFields, LogLevel } from "../ambient/log.ts";
import type { MetricsSnapshot } from "../ambient/metrics.ts";
import type { AtOnce } from "../domain/at-once.ts";
import type { RateLimit, RateLimitState } from "../domain/rate-limit.ts";
import type { Permit } from "../ratelimit/limiter.ts";
import type { KeyChange } from "../store/key-changes.ts";
import type { KeyStore } from "../store/key-store.ts";
import type { UsageLedger } from "../store/usage-ledger.ts";
import type { WireError } from "./wire-error.ts";

/* What threads ask of each other. The home thread has everything that there may be only one of; the others serve. */

/** What the home thread does for one that serves. */
export interface HomeMethods extends KeyStore, UsageLedger {
  /** The row in which a key with a local limit is counted; undefined when all are taken. */
  rowOf(keyId: string): Row | undefined;
  /** Windows that the other replicas should hear of, with the next tick or at once. */
  windowsChanged(slots: readonly number[], urgentSlots: readonly number[]): void;
  takeStrict(keyId: string, rule: RateLimit): AtOnce<RemotePermitState>;
  keepStrict(number: number): void;
  giveBackStrict(number: number): AtOnce<RateLimitState>;
  look(keyId: string, rule: RateLimit): AtOnce<RateLimitState>;
  /** When it is answered, `setReady` has been said where readiness has changed. */
  refreshReadiness(): AtOnce<void>;
  log(level: LogLevel, message: string, fields: LogFields | undefined, cause: WireError | undefined): void;
}

/** A row of the shared windows, for as long as it is the key's. */
export interface Row {
  readonly slot: number;
  readonly claim: number;
}

/** Where a strict permit leaves the key. The number names one that was admitted, until it is kept or given back. */
export interface RemotePermitState extends RateLimitState {
  readonly outcome: Permit["outcome"];
  readonly number: number;
}

/** What a thread that serves does for the home thread. */
export interface ServingMethods {
  /** Resolves when connections to the port are taken here too. */
  listen(port: number, host: string): Promise<number>;
  learnRootKeys(digests: readonly string[] | undefined): void;
  setReady(ready: boolean): void;
  /** From monotonic to Unix time: everybody tells the end of a window as the same moment. */
  tellTimeBy(unixOffsetMs: number): void;
  /** From the answer on, what was remembered of the key is not served any more. */
  forget(change: KeyChange): void;
  forgetAll(): void;
  snapshot(): Promise<MetricsSnapshot>;
  startClosing(): void;
  stopStreams(): void;
  /** Resolves when everything under way has been answered. */
  close(graceMs: number): Promise<void>;
}

/** What a thread that serves is started with. */
export interface ServingSetup {
  /** From 1 on. */
  readonly thread: number;
  readonly monotonicOriginMs: number;
  readonly unixOffsetMs: number;
  readonly windows: SharedWindows;
  /** Whether the other replicas are told of windows. */
  readonly hasListener: boolean;
  readonly cacheTtlMs: number;
  readonly cacheKeysMax: number;
  readonly connectionsMax: number;
  readonly fastPath: boolean;
  readonly debug: boolean;
}

/** The memory of windows that all threads count in. */
export interface SharedWindows {
  readonly rows: SharedArrayBuffer;
  readonly guard: SharedArrayBuffer;
}
