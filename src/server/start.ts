import { setTimeout as delay } from "node:timers/promises";
import type { Ambient } from "../ambient/ambient.ts";
import type { Clock } from "../ambient/clock.ts";
import { createMetrics } from "../ambient/metrics.ts";
import type { Settings } from "../config/settings.ts";
import type { Secret } from "../domain/secret.ts";
import { WaitingRoom } from "../domain/waiting-room.ts";
import { announceChanges } from "../store/announce-changes.ts";
import { CoalescingUsageLedger } from "../store/coalescing-usage-ledger.ts";
import { LedgerWatch } from "../store/ledger-watch.ts";
import { createRootAccess } from "../usecases/root-access.ts";
import { RootKeys } from "../usecases/root-keys.ts";
import { ChangeFollower } from "./change-follower.ts";
import { startInternalListener, tlsFilesOf } from "./internal-listener.ts";
import { cacheKeys } from "./key-cache.ts";
import { connectKeyChanges } from "./key-changes.ts";
import { openStore, storeWaitMs, untilAvailable } from "./open-store.ts";
import { createPublicApi } from "./public-api.ts";
import { startRateLimits } from "./rate-limits.ts";
import { ReadyState } from "./ready-state.ts";
import { serveHere } from "./serving.ts";
import { ServingThreadPool } from "./serving-thread-pool.ts";
import { waitAtMost } from "./wait-at-most.ts";
import { rootKeyFileOf, writeRootKey } from "./write-root-key.ts";

export interface RunningServer {
  readonly port: number;
  readonly internalPort: number;
  /** Resolves when the store can be used, with the root key if one was just generated; rejects if it never can be. */
  readonly ready: Promise<Secret | undefined>;
  /** Resolves when all requests under way are answered and all writes are done. */
  stop(): Promise<void>;
}

export interface ServerOptions extends Pick<Ambient, "clock" | "random" | "log"> {
  readonly settings: Settings;
  /** This process cannot use its store any more; only a new process can continue. */
  readonly onFatal: (cause: unknown) => void;
  /** Replaces the database's clock in tests. */
  readonly ledgerClock?: Pick<Clock, "nowMs">;
}

/** Clients with open connections have this long for one more request, whose answer tells them to leave. */
const lastRequestMs = 250;
const shutdownGraceMs = 10_000;
const tidyEveryMs = 3_600_000;

/** Builds all parts and serves verifications: with everything in one process, or as an edge. */
export async function startServer(options: ServerOptions): Promise<RunningServer> {
  const { settings, clock, random, log } = options;
  const metrics = createMetrics();
  metrics.addProcessMetrics();
  const ambient = { clock, random, log, metrics };
  const watch = new LedgerWatch(ambient);
  const { store, usable } = await openStore({ ...options, metrics, watch });
  const undo: (() => unknown)[] = [() => store.close()];
  try {
    const waitingRoom = new WaitingRoom(settings.callsMax, () => metrics.shed("call"));
    metrics.gauge(
      "latchkey_calls_waiting",
      "Calls that wait for a look-up, a permit or a commit.",
      () => waitingRoom.taken,
    );
    const threads = settings.workers > 1 ? new ServingThreadPool(options.onFatal) : undefined;
    const cache = cacheKeys(store.keys, threads, { ...ambient, settings, waitingRoom });
    const usage = new CoalescingUsageLedger(store.usageLanes, { ...ambient, waitingRoom, watch });
    const rateLimits = await startRateLimits({ ...ambient, settings, waitingRoom, permitLanes: store.permitLanes });
    undo.unshift(() => rateLimits.stop());
    const caches = [cache.memory];
    const changes = await connectKeyChanges({ ...ambient, settings, caches, rateLimits });
    undo.unshift(() => changes.close());
    const rootKeys = new RootKeys({ ...ambient, configured: settings.rootKeys, store: store.rootKeys });
    const rootAccess = createRootAccess(rootKeys, announceChanges(store.keys, [cache.changes, changes]));

    const internal = await startInternalListener({
      ...ambient,
      metrics: threads?.mergeMetrics(metrics) ?? metrics,
      host: settings.internalHost,
      port: settings.internalPort,
      secret: settings.internalSecret,
      tls: tlsFilesOf(settings),
      services: new Map(),
    });
    undo.unshift(() => internal.close());
    const refreshReadiness = () => store.health?.refresh();
    const services = { keys: cache.keys, rootAccess, usage, limiter: rateLimits.limiter, refreshReadiness };
    threads?.start(settings, { ...services, log }, rateLimits.local);
    undo.unshift(() => threads?.end());
    const { fastPath, connectionsMax } = settings;
    const api = { ...ambient, ...services, fastPath, connectionsMax };
    const serving = threads ?? serveHere(createPublicApi(api));
    const follower = new ChangeFollower({
      ...ambient,
      feed: store.changes,
      caches,
      onKeyChanged: (keyId) => rateLimits.keyChanged(keyId),
      onRootKeysChanged: () => rootKeys.refresh(),
    });
    undo.unshift(() => follower.stop());
    const readyState = new ReadyState(store.health, (ready) => serving.setReady(ready));
    let stopping = false;
    const prepare = async () => {
      await usable;
      // The cache serves only while news is current: before the first request, if possible.
      await follower.start();
      await untilAvailable(
        () => rootKeys.read(),
        () => stopping,
      );
      // Before the first connection is accepted. If the root key is not generated yet, no caller can have one.
      if (rootKeys.areKnown) await readyState.setOpen(!stopping);
    };
    undo.unshift(() => {
      stopping = true;
    });
    const prepared = prepare();
    // `ready` rejects with the failure.
    prepared.catch(() => {});
    await waitAtMost(storeWaitMs, prepared);
    const port = await serving.listen(settings.port, settings.host);

    const tidy = () => {
      // After a failure the next run, or another replica, does it.
      store
        .tidy(clock.nowMs())
        .catch((error: Error) => log.warn("could not tidy the store", { reason: error.message }));
    };
    const tidying = setInterval(tidy, tidyEveryMs).unref();
    const becomeReady = async () => {
      await prepared;
      // Only after the port was bound: a generated root key is printed once, and must not be lost by a failed start.
      const generated = await rootKeys.load((rootKey) => writeRootKey(rootKeyFileOf(settings), rootKey));
      await readyState.setOpen(!stopping);
      tidy();
      return generated;
    };

    return {
      port,
      internalPort: internal.port,
      ready: becomeReady(),
      async stop() {
        // First load balancers see that this replica is not ready, and have time to react while all requests are served.
        // Then clients are told to leave, also those between two requests. Then the store closes.
        clearInterval(tidying);
        stopping = true;
        await readyState.setOpen(false);
        await delay(settings.drainMs);
        serving.startShutdown();
        await delay(Math.min(settings.drainMs, lastRequestMs));
        serving.stopStreams();
        await serving.close(shutdownGraceMs);
        await usage.drained();
        follower.stop();
        await rateLimits.stop();
        changes.close();
        await internal.close();
        await threads?.end();
        await store.close();
      },
    };
  } catch (error) {
    for (const step of undo) await step();
    throw error;
  }
}
