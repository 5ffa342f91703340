import { setTimeout as delay } from "node:timers/promises";
import { sameValue } from "../config/same-value.ts";
import type { ForwardedAnswer } from "../domain/forwarded-call.ts";
import { counterOfOwner } from "../domain/subject.ts";
import type { CarryOut } from "../rpc/forwarded-calls.ts";
import { announceAll, announceChanges } from "../store/announce-changes.ts";
import { audienceOf, type Change } from "../store/changes.ts";
import { becomeReady } from "./become-ready.ts";
import { createCarryOut } from "./carry-out.ts";
import { ChangeFollower } from "./change-follower.ts";
import { connectChanges } from "./changes.ts";
import { connectRemoteCore } from "./connect-remote-core.ts";
import { internalAccessOf, startInternalListener } from "./internal-listener.ts";
import { cacheKeys } from "./key-cache.ts";
import { openLocalCore } from "./open-local-core.ts";
import { storeWaitMs } from "./open-store.ts";
import type { OpenedCore } from "./opened-core.ts";
import { createPublicApi } from "./public-api.ts";
import { startRateLimits } from "./rate-limits.ts";
import { ReadyState } from "./ready-state.ts";
import type { StartedServer, StartOptions } from "./running-server.ts";
import { serveHere, servingSettingsOf } from "./serving.ts";
import { ServingThreadPool } from "./serving-thread-pool.ts";
import { tracingOf } from "./tracing.ts";
import { waitAtMost } from "./wait-at-most.ts";

/** Clients with open connections have this long for one more request, whose answer tells them to leave. */
const lastRequestMs = 250;
const shutdownGraceMs = 10_000;
const edgeReadsEveryMs = 50;

/** Serves verifications and management calls, with a core in this process or behind coordinators. */
export async function startFront(options: StartOptions): Promise<StartedServer> {
  const { settings, live, metrics, log, teardown } = options;
  const threads = settings.workers > 1 ? new ServingThreadPool(options.onFatal) : undefined;

  // The core.
  const onOldAnswer = (change: Change) => memory.invalidate(change);
  /** What a coordinator has changed for a caller of this edge is in force here when it is answered. */
  const onChanged = async (changed: readonly Change[] | "everything") => {
    if (changed === "everything") {
      for (const cache of caches) cache.invalidateAll();
      await threads?.forgetAll();
      return;
    }
    await announceAll(changed, here);
    for (const change of changed) onChange(change);
  };
  const opened = await (settings.role === "edge"
    ? connectRemoteCore({ ...options, onOldAnswer, onChanged })
    : openLocalCore(options));
  const { core, usable, health, verdicts, readHolders } = opened;

  // The front's own state: keys in memory, windows and permits.
  const { cacheTtlMs: ttlMs, cacheKeysMax: keysMax } = settings;
  const cache = cacheKeys(core.keys, { ...options, ttlMs, keysMax });
  // Serving threads have their own caches, and hear of every change.
  const memory = threads ?? cache.memory;
  const rateLimits = await startRateLimits({ ...options, core });
  teardown.add("rate limits", () => rateLimits.stop());
  const onChange = (change: Change) => {
    if (change.kind === "key") rateLimits.holderChanged(change.keyId);
    if (change.kind === "owner") rateLimits.holderChanged(counterOfOwner(change.ownerId));
  };
  // What serving threads forget they ask this thread for again: it forgets first.
  const caches = [verdicts, memory];
  const changes = await connectChanges({ ...options, caches, onChange, replica: rateLimits.local.replica });
  teardown.add("messages about changes", () => changes.close());
  const here = [audienceOf(verdicts), threads ?? audienceOf(memory)];
  const manages =
    "management" in opened.manages
      ? { management: announceChanges(opened.manages.management, [...here, changes]) }
      : opened.manages;
  live.follow(async (next, before) => {
    if (sameValue(next.rootKeys, before.rootKeys)) return;
    for (const audience of here) await audience.broadcast({ kind: "rootKeys" });
  });

  // What serves the public port: this thread, or others.
  const services = {
    usage: core.usage,
    limiter: rateLimits.limiter,
    checkRootKey: verdicts.check,
    readHolders,
    refreshReadiness: () => health?.refresh(),
  };
  threads?.start(
    settings,
    { ...services, keys: core.keys, log, carryOut: carryOutFor(manages, { ...options, ...services }) },
    rateLimits.local,
  );
  teardown.add("threads", () => threads?.end());
  const { fastPath, verifyAuth, publicUrl, corsOrigins } = settings;
  const fixed = { fastPath, verifyAuth, publicUrl, corsOrigins, tracing: tracingOf(settings) };
  const served = { ...options, ...services, manages, ...cache, ...fixed, settings: servingSettingsOf(settings) };
  const serving = threads ?? serveHere(createPublicApi(served));
  live.follow((next) => serving.reload(next));
  const internal = await startInternalListener({
    ...options,
    metrics: threads?.mergeMetrics(metrics) ?? metrics,
    host: settings.internalHost,
    port: settings.internalPort,
    access: internalAccessOf(settings),
    services: new Map(),
  });
  live.follow((next) => internal.reload(internalAccessOf(next)));
  teardown.add("internal port", () => internal.close());

  const follower = new ChangeFollower({
    ...options,
    feed: core.changes,
    caches,
    onChange,
    // A coordinator answers when there is news.
    ...(settings.role === "edge" && { everyMs: edgeReadsEveryMs }),
  });
  teardown.add("change feed", () => follower.stop());
  const readyState = new ReadyState(health, (ready) => serving.setReady(ready));
  teardown.add("start", () => readyState.startStop());
  const prepare = async () => {
    await usable;
    // The cache serves only while news is current: before the first request, if possible.
    await follower.start();
    // Before the first connection is accepted. If the root key is not generated yet, no caller can have one.
    if (await opened.prepare(() => readyState.isStopping)) await readyState.open();
  };
  const prepared = prepare();
  // `ready` rejects with the failure.
  prepared.catch(() => {});
  await waitAtMost(storeWaitMs, prepared);
  const port = await serving.listen(settings.port, settings.host);
  teardown.add("public port", () => serving.close(shutdownGraceMs));

  return {
    port,
    internalPort: internal.port,
    ready: becomeReady(prepared, opened, readyState),
    async stop() {
      // First load balancers see that this replica is not ready, and have time to react while all requests are served.
      // Then clients are told to leave, also those between two requests. Then everything stops, the store last.
      await readyState.close();
      const { drainMs } = live.current;
      await delay(drainMs);
      serving.startShutdown();
      await delay(Math.min(drainMs, lastRequestMs));
      serving.stopStreams();
      await teardown.run();
    },
  };
}

/** Who carries out the management calls of other threads. */
function carryOutFor(manages: OpenedCore["manages"], deps: Parameters<typeof createCarryOut>[0]): CarryOut {
  if ("carryOut" in manages) return manages.carryOut;
  const carryOut = createCarryOut(deps);
  // Threads of one process know the same methods.
  return async (call) => (await carryOut(call, manages.management)) as ForwardedAnswer;
}
