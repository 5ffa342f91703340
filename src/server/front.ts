import type { Ambient } from "../ambient/ambient.ts";
import type { MetricsRegistry } from "../ambient/metrics.ts";
import type { TracingOptions } from "../ambient/tracing-options.ts";
import { parseOtlpHeaders } from "../config/parse-setting.ts";
import { sameValue } from "../config/same-value.ts";
import type { Settings } from "../config/settings.ts";
import type { MaybePromise } from "../domain/maybe-promise.ts";
import { announceChanges } from "../store/announce-changes.ts";
import { CachedKeyLookup, type KeyCacheOptions } from "../store/cached-key-lookup.ts";
import { CachedOwners } from "../store/cached-owners.ts";
import { allCaches, audienceOf, type Change } from "../store/changes.ts";
import type { KeyLookup, OwnerLookup } from "../store/key-lookup.ts";
import type { StoreHealth } from "../store/store-health.ts";
import { ChangeFollower } from "./change-follower.ts";
import { connectChanges } from "./changes.ts";
import { connectRemoteCore } from "./connect-remote-core.ts";
import type { InternalAddress, InternalListener } from "./internal-listener.ts";
import { openLocalCore } from "./open-local-core.ts";
import type { OpenedCore } from "./opened-core.ts";
import { createPublicApi, type PublicApi } from "./public-api.ts";
import { startRateLimits } from "./rate-limits.ts";
import type { StartOptions } from "./running-server.ts";
import type { Serving } from "./serving.ts";

/** What a process serves, by its role. Verifications and management calls are served by it, or by its workers. */
export interface Front extends Pick<OpenedCore, "completeStart"> {
  readonly serving: Serving;
  /** Absent if the core can always be used once it is usable. */
  readonly health: StoreHealth | undefined;
  /** All that the metrics show. */
  readonly metrics: MetricsRegistry;
  /** Resolves when requests can be answered: to false if no caller can have a root key yet. */
  prepare(isStopping: () => boolean): Promise<boolean>;
  /** Binds the internal port, with services for fronts elsewhere. Absent: it has metrics only. */
  listenInternally?(at: InternalAddress): Promise<InternalListener>;
  /** Asks fronts elsewhere to leave. Resolves when they have, or after a while. */
  stopFronts?(): Promise<void>;
}

export interface FrontOptions extends StartOptions {
  /** Updates readiness before it is reported to a caller. Absent: the health of the store says it. */
  readonly refreshReadiness?: () => MaybePromise<void>;
}

const edgeReadsEveryMs = 50;

/** A front in this process, with a core in the same process or behind links. */
export async function openFront(options: FrontOptions): Promise<Front & { readonly serving: PublicApi }> {
  const { settings, live, metrics, teardown } = options;

  // The core.
  const onOldAnswer = (change: Change) => cache.memory.invalidate(change);
  const onAnnounced = (changes: readonly Change[]) => {
    for (const change of changes) memory.invalidate(change);
  };
  /** What a coordinator has changed for a caller of this edge is in force here when it is answered. */
  const onChanged = async (changed: readonly Change[] | "everything") => {
    if (changed === "everything") memory.invalidateAll();
    else onAnnounced(changed);
  };
  const opened = await (settings.role === "edge"
    ? connectRemoteCore({ ...options, onOldAnswer, onChanged, onAnnounced })
    : openLocalCore(options));
  const { core, health, verdicts, readHolders } = opened;

  // The front's own state: keys in memory, windows and permits.
  const { cacheTtlMs: ttlMs, cacheKeysMax: keysMax } = settings;
  const cache = cacheKeys(core.keys, { ...options, ttlMs, keysMax });
  const rateLimits = await startRateLimits({ ...options, core });
  teardown.add("rate limits", () => rateLimits.stop());
  /** All that has to know of changes. */
  const memory = allCaches([verdicts, cache.memory, rateLimits]);
  const onChange = (change: Change) => memory.invalidate(change);
  const changes = await connectChanges({ ...options, onChange, replica: rateLimits.replica });
  teardown.add("messages about changes", () => changes.close());
  const here = audienceOf(memory);
  const manages =
    "management" in opened.manages
      ? { management: announceChanges(opened.manages.management, [here, changes]) }
      : opened.manages;
  live.follow(async (next, before) => {
    if (!sameValue(next.rootKeys, before.rootKeys)) await here.broadcast({ kind: "rootKeys" });
  });

  // What serves the public port.
  const services = {
    usage: core.usage,
    limiter: rateLimits.limiter,
    checkRootKey: verdicts.check,
    readHolders,
    refreshReadiness: options.refreshReadiness ?? (() => health?.refresh()),
  };
  const { fastPath, verifyAuth, publicUrl, corsOrigins } = settings;
  const fixed = { fastPath, verifyAuth, publicUrl, corsOrigins, tracing: tracingOf(settings) };
  const serving = createPublicApi({ ...options, ...services, manages, ...cache, ...fixed });
  live.follow((next) => serving.reload(next));
  const follower = new ChangeFollower({
    ...options,
    feed: core.changes,
    cache: memory,
    // A coordinator answers when there is news.
    ...(settings.role === "edge" && { everyMs: edgeReadsEveryMs }),
  });
  teardown.add("change feed", () => follower.stop());
  return {
    serving,
    health,
    metrics,
    completeStart: () => opened.completeStart(),
    async prepare(isStopping) {
      await opened.usable;
      // The cache serves only while news is current: before the first request, if possible.
      await follower.start();
      return opened.prepare(isStopping);
    },
  };
}

interface KeyCacheDeps extends KeyCacheOptions, Pick<Ambient, "clock" | "metrics"> {}

/** Caches look-ups of keys and of their owners in this process. */
export function cacheKeys(store: KeyLookup & OwnerLookup, deps: KeyCacheDeps) {
  const { metrics } = deps;
  const keys = new CachedKeyLookup(store, deps, deps);
  const owners = new CachedOwners(store, deps, deps);
  metrics.gauge("latchkey_cached_keys", "Keys held in memory.", () => keys.size);
  metrics.gauge("latchkey_cached_owners", "Records of owners held in memory.", () => owners.size);
  // `memory` has to learn of changes.
  return { keys, owners, memory: allCaches([keys, owners]) };
}

/** Undefined if no collector is set: nothing is traced then. */
function tracingOf(settings: Settings): TracingOptions | undefined {
  const { otlpEndpoint, otlpTracesEndpoint, otlpHeaders, serviceName, traceRatio } = settings;
  const url = otlpTracesEndpoint || (otlpEndpoint && `${otlpEndpoint}/v1/traces`);
  if (url === "") return undefined;
  const headers = otlpHeaders ? parseOtlpHeaders(otlpHeaders.reveal()) : {};
  return { url, headers, serviceName, sampleRatio: traceRatio };
}
