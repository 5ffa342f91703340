import { setTimeout as delay } from "node:timers/promises";
import type { Clock } from "../ambient/clock.ts";
import type { Log } from "../ambient/log.ts";
import { createMetrics } from "../ambient/metrics.ts";
import type { Random } from "../ambient/random.ts";
import type { Settings } from "../config/settings.ts";
import type { Secret } from "../domain/secret.ts";
import { announceChanges } from "../store/announcing-key-store.ts";
import { CachedKeyStore } from "../store/cached-key-store.ts";
import { CoalescingUsageLedger } from "../store/coalescing-usage-ledger.ts";
import { RootKeys } from "../usecases/root-keys.ts";
import { handOverRootKey, rootKeyFileOf } from "./hand-over-root-key.ts";
import { startInternalListener } from "./internal-listener.ts";
import { connectKeyChanges } from "./key-changes.ts";
import { openStore } from "./open-store.ts";
import { createPublicApi } from "./public-api.ts";
import { startRateLimits } from "./rate-limits.ts";

export interface RunningServer {
  readonly port: number;
  readonly internalPort: number;
  /** Resolves when the store is there, with the root key if one has just been generated; rejects if it never will be. */
  readonly ready: Promise<Secret | undefined>;
  /** Resolves when everything under way has been answered and written. */
  stop(): Promise<void>;
}

export interface ServerOptions {
  readonly settings: Settings;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** The store is lost to this process; only a new one can go on. */
  readonly onFatal: (cause: unknown) => void;
  /** Takes the place of the database's clock in tests. */
  readonly ledgerClock?: Pick<Clock, "nowMs">;
}

/** Misses in the key cache that may wait on the store at once, and behind those. */
const lookupsMax = 64;
const lookupsQueuedMax = 10_000;
/** How long clients on open connections have to make the request whose answer tells them to leave. */
const farewellMs = 250;
const shutdownGraceMs = 10_000;
const tidyEveryMs = 3_600_000;

/** Puts the parts together and starts serving verifications: with everything in one process, or as an edge. */
export async function startServer(options: ServerOptions): Promise<RunningServer> {
  const { settings, clock, random, log } = options;
  const metrics = createMetrics();
  metrics.addProcessMetrics();
  const ambient = { clock, random, log, metrics };
  const { store, usable } = await openStore({ ...options, metrics });
  const undo: (() => unknown)[] = [() => store.close()];
  try {
    const cache = {
      ttlMs: settings.cacheTtlMs,
      keysMax: settings.cacheKeysMax,
      // As many as there are connections: those that waited for one would do so outside the line.
      lookupsMax: settings.databaseUrl ? settings.databaseConnectionsMax : lookupsMax,
      lookupsQueuedMax,
    };
    const cachedKeys = new CachedKeyStore(store.keys, cache, ambient);
    const usage = new CoalescingUsageLedger(store.usageLanes, ambient);
    metrics.gauge("latchkey_cached_keys", "Keys held in memory.", () => cachedKeys.size);
    const rateLimits = await startRateLimits({ ...ambient, settings, permitLanes: store.permitLanes });
    undo.unshift(() => rateLimits.stop());
    const changes = await connectKeyChanges({ ...ambient, settings, cachedKeys, rateLimits });
    undo.unshift(() => changes.close());
    const keys = announceChanges(cachedKeys, changes);
    const rootKeys = new RootKeys({ ...ambient, configured: settings.rootKeys, store: store.rootKeys });

    const internal = await startInternalListener({
      ...ambient,
      host: settings.internalHost,
      port: settings.internalPort,
      secret: settings.internalSecret,
      services: new Map(),
    });
    undo.unshift(() => internal.close());
    const isRootKey = (presented: Secret) => rootKeys.has(presented);
    const { onePort, readiness, stopStreams } = createPublicApi({
      ...ambient,
      keys,
      usage,
      limiter: rateLimits.limiter,
      isRootKey,
      fastPath: settings.fastPath,
    });
    const port = await onePort.listen(settings.port, settings.host);

    const tidy = () => {
      // What is not tidied now is the next time, or by another replica.
      store
        .tidy(clock.nowMs())
        .catch((error: Error) => log.warn("could not tidy the store", { reason: error.message }));
    };
    const tidying = setInterval(tidy, tidyEveryMs).unref();
    const becomeReady = async () => {
      await usable;
      const generated = await rootKeys.load((rootKey) => handOverRootKey(rootKeyFileOf(settings), rootKey));
      readiness.set(true);
      tidy();
      return generated;
    };

    return {
      port,
      internalPort: internal.port,
      ready: becomeReady(),
      async stop() {
        // Load balancers learn first, and get the time to act on it while everybody is served; then clients are sent
        // away, those between two requests too; then the store closes.
        clearInterval(tidying);
        readiness.set(false);
        await delay(settings.drainMs);
        onePort.startClosing();
        await delay(Math.min(settings.drainMs, farewellMs));
        stopStreams();
        await onePort.close(shutdownGraceMs);
        await usage.drained();
        await rateLimits.stop();
        changes.close();
        await internal.close();
        await store.close();
      },
    };
  } catch (error) {
    for (const step of undo) await step();
    throw error;
  }
}
