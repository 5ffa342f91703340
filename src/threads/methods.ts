import type { LogFields, LogLevel } from "../ambient/log.ts";
import type { MetricsSnapshot } from "../ambient/metrics.ts";
import type { TracingOptions } from "../ambient/tracing-options.ts";
import type { StoredHolders } from "../domain/explanation.ts";
import type { ForwardedAnswer, ForwardedCall } from "../domain/forwarded-call.ts";
import type { MaybePromise } from "../domain/maybe-promise.ts";
import type { RateLimit, RateLimitState } from "../domain/rate-limit.ts";
import type { RootKeyVerdict } from "../domain/root-key.ts";
import type { WireError } from "../link/wire-error.ts";
import type { Permit } from "../ratelimit/limiter.ts";
import type { ChangeCache } from "../store/changes.ts";
import type { KeyLookup, OwnerLookup } from "../store/key-lookup.ts";
import type { KeyName } from "../store/root-access.ts";
import type { UsageLedger } from "../store/usage-ledger.ts";

/* What threads ask each other. The main thread owns everything that may exist only once; the other threads serve. */

/** What a serving thread can ask the main thread. Only the main thread knows the root keys: it checks each one presented. */
export interface MainThreadMethods extends KeyLookup, OwnerLookup, UsageLedger {
  check(presented: string): MaybePromise<RootKeyVerdict | undefined>;
  /** Carries out a management call. */
  carryOut(call: ForwardedCall, isRead: boolean): Promise<ForwardedAnswer>;
  readHolders(rootKey: string, name: KeyName): Promise<StoredHolders>;
  /** The row in which what a local limit lets pass is counted; undefined if no row is free for the API. */
  rowOf(subject: string, apiId: string | undefined): Row | undefined;
  /** Windows to report to the other replicas, with the next tick or immediately. */
  windowsChanged(slots: readonly number[], urgentSlots: readonly number[]): void;
  takeStrict(
    subject: string,
    rule: RateLimit,
    cost: number,
    apiId: string | undefined,
  ): MaybePromise<RemotePermitState>;
  commitStrict(number: number): void;
  releaseStrict(number: number): MaybePromise<RateLimitState>;
  peek(subject: string, rule: RateLimit): MaybePromise<RateLimitState>;
  inspect(subject: string, rule: RateLimit, cost: number): MaybePromise<RateLimitState | undefined>;
  /** Before it resolves, `setReady` has been called if readiness has changed. */
  refreshReadiness(): MaybePromise<void>;
  log(level: LogLevel, message: string, fields: LogFields | undefined, cause: WireError | undefined): void;
}

/** A row of the shared windows, valid while it belongs to the subject. */
export interface Row {
  readonly slot: number;
  readonly claim: number;
}

/** The state after a strict permit. The number identifies an admitted permit until it is used or given back. */
export interface RemotePermitState extends RateLimitState {
  readonly outcome: Permit["outcome"];
  readonly number: number;
}

/** What the main thread can ask a serving thread. */
export interface ServingMethods extends ChangeCache {
  /** Resolves when this thread accepts connections on the port. */
  listen(port: number, host: string): Promise<number>;
  setReady(ready: boolean): void;
  reload(settings: ServingSettings): void;
  /** The offset from monotonic to Unix time, so that all threads show the same end of a window. */
  setUnixOffset(unixOffsetMs: number): void;
  snapshot(): Promise<MetricsSnapshot>;
  startShutdown(): void;
  stopStreams(): void;
  /** Resolves when all requests under way are answered. */
  close(graceMs: number): Promise<void>;
}

/** The start parameters of a serving thread. */
export interface ServingSetup {
  /** From 1 on. */
  readonly thread: number;
  readonly monotonicOriginMs: number;
  readonly unixOffsetMs: number;
  readonly windows: WindowMemory;
  /** Whether windows are reported to other replicas. */
  readonly hasListener: boolean;
  readonly cacheTtlMs: number;
  readonly cacheKeysMax: number;
  readonly fastPath: boolean;
  readonly verifyAuth: "open" | "required";
  readonly publicUrl: string;
  readonly corsOrigins: readonly string[];
  readonly tracing: TracingOptions | undefined;
  readonly settings: ServingSettings;
}

/** The settings of a serving thread that may change while it runs. */
export interface ServingSettings {
  /** Of this thread. */
  readonly connectionsMax: number;
  readonly logLevel: LogLevel;
  readonly logVerifications: "none" | "refused" | "all";
  /** In PEM; absent: cleartext. */
  readonly tls: { readonly cert: string; readonly key: string } | undefined;
}

/** The memory of windows that all threads count in. */
export interface WindowMemory {
  readonly rows: SharedArrayBuffer;
  readonly guard: SharedArrayBuffer;
}
