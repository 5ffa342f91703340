import { writeFileSync } from "node:fs";
import type { Clock } from "../ambient/clock.ts";
import type { Log } from "../ambient/log.ts";
import { createMetrics } from "../ambient/metrics.ts";
import type { Random } from "../ambient/random.ts";
import type { Settings } from "../config/settings.ts";
import type { Secret } from "../domain/secret.ts";
import { CachedKeyStore } from "../store/cached-key-store.ts";
import { CoalescingUsageLedger } from "../store/coalescing-usage-ledger.ts";
import { claimDataFolder } from "../store/sqlite/data-folder.ts";
import { openSqliteStore } from "../store/sqlite/open-sqlite-store.ts";
import { loadRootKeys } from "../usecases/root-keys.ts";
import { startInternalListener } from "./internal-listener.ts";
import { createPublicApi } from "./public-api.ts";

export interface RunningServer {
  readonly port: number;
  readonly internalPort: number;
  /** The root key, the one time it is generated. */
  readonly generatedRootKey: Secret | undefined;
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
}

/** Misses in the key cache that may wait on the store at once, and behind those. */
const lookupsMax = 64;
const lookupsQueuedMax = 10_000;
const shutdownGraceMs = 10_000;

/** Puts the parts together, everything in one process on the embedded store, and starts serving. */
export async function startServer({ settings, clock, random, log, onFatal }: ServerOptions): Promise<RunningServer> {
  const folder = claimDataFolder(settings.dataDir);
  const undo: (() => unknown)[] = [() => folder.release()];
  try {
    const metrics = createMetrics();
    const ambient = { clock, random, log, metrics };
    const store = await openSqliteStore({ ...ambient, file: folder.databaseFile, onDeath: onFatal });
    undo.unshift(() => store.close());

    const { isRootKey, generated } = await loadRootKeys({
      ...ambient,
      configured: settings.rootKeys,
      store: store.rootKeys,
      handOver: (rootKey) => writeFileSync(folder.rootKeyFile, `${rootKey.reveal()}\n`, { mode: 0o600, flush: true }),
    });
    const cache = { ttlMs: settings.cacheTtlMs, keysMax: settings.cacheKeysMax, lookupsMax, lookupsQueuedMax };
    const keys = new CachedKeyStore(store.keys, cache, ambient);
    const usage = new CoalescingUsageLedger(store.usage, ambient);
    metrics.gauge("latchkey_cached_keys", "Keys held in memory.", () => keys.size);

    const internal = await startInternalListener({
      ...ambient,
      host: settings.internalHost,
      port: settings.internalPort,
      secret: settings.internalSecret,
    });
    undo.unshift(() => internal.close());
    const { onePort, readiness, stopStreams } = createPublicApi({ ...ambient, keys, usage, isRootKey });
    const port = await onePort.listen(settings.port, settings.host);
    readiness.set(true);

    return {
      port,
      internalPort: internal.port,
      generatedRootKey: generated,
      async stop() {
        // Load balancers learn first, and get the time to act on it; then clients are sent away; then the store closes.
        readiness.set(false);
        onePort.startClosing();
        await new Promise((resolve) => setTimeout(resolve, settings.drainMs));
        stopStreams();
        await onePort.close(shutdownGraceMs);
        await usage.drained();
        internal.close();
        await store.close();
        folder.release();
      },
    };
  } catch (error) {
    for (const step of undo) await step();
    throw error;
  }
}
