// A thread that serves the public port together with others. The main thread owns everything that may exist only once.
import { parentPort, workerData } from "node:worker_threads";
import { createThreadClock } from "../ambient/clock.ts";
import { measureEventLoopDelay } from "../ambient/event-loop-delay.ts";
import { createMetrics } from "../ambient/metrics.ts";
import { createSystemRandom } from "../ambient/random.ts";
import { WaitingRoom } from "../domain/waiting-room.ts";
import { WindowRows } from "../domain/window-rows.ts";
import { limiterByMode } from "../ratelimit/limiter-by-mode.ts";
import { SharedRowGuard } from "../ratelimit/local/shared-row-guard.ts";
import { numbersFrom } from "../ratelimit/local/window-numbers.ts";
import { CachedVerdicts } from "../store/cached-verdicts.ts";
import { allCaches } from "../store/changes.ts";
import type { MainThreadMethods, ServingMethods, ServingSetup } from "../threads/methods.ts";
import {
  type MainThreadLink,
  remoteKeys,
  remoteListener,
  remoteLog,
  remoteRootKeys,
  remoteStrictLimiter,
  remoteUsage,
} from "../threads/remote-main-thread.ts";
import { SharedLimiter } from "../threads/shared-limiter.ts";
import { ThreadLink } from "../threads/thread-link.ts";
import { cacheKeys } from "./key-cache.ts";
import { createPublicApi } from "./public-api.ts";

/** Most callers of this thread that wait for a look-up. The main thread counts only one of them for each look-up. */
const callersMax = 100_000;
const sweepEveryMs = 100;
/** Every cached row is checked within this many sweeps. */
const sweeps = 20;

const setup = workerData as ServingSetup;
const clock = createThreadClock(setup.monotonicOriginMs);
const random = createSystemRandom();
const metrics = createMetrics();

const methods: ServingMethods = {
  listen: (port, host) => onePort.listen(port, host, { reusePort: true }),
  setReady: (ready) => setReady(ready),
  reload: (settings) => reload(settings),
  setUnixOffset: (unixOffsetMs) => localLimiter.setUnixOffset(unixOffsetMs),
  invalidate: (change) => memory.invalidate(change),
  invalidateAll: () => memory.invalidateAll(),
  newsIsCurrent: (atMs) => memory.newsIsCurrent(atMs),
  snapshot: () => metrics.snapshot(),
  startShutdown: () => onePort.startShutdown(),
  stopStreams: () => stopStreams(),
  close: (graceMs) => close(graceMs),
};
if (parentPort === null) throw new Error("this runs in a worker thread");
const mainThread: MainThreadLink = new ThreadLink<ServingMethods, MainThreadMethods>(parentPort, methods);
parentPort.on("message", (batch) => mainThread.onMessage(batch));

const cache = cacheKeys(remoteKeys(mainThread), {
  ttlMs: setup.cacheTtlMs,
  keysMax: setup.cacheKeysMax,
  waitingRoom: new WaitingRoom(callersMax),
  clock,
  metrics,
});
const { check, readHolders } = remoteRootKeys(mainThread);
const verdicts = new CachedVerdicts(check, setup.cacheTtlMs, clock);
const memory = allCaches([cache.memory, verdicts]);
const localLimiter = new SharedLimiter({
  rows: new WindowRows(setup.windows.rows, numbersFrom(random)),
  guard: new SharedRowGuard(setup.windows.guard),
  askForRow: (subject, apiId) => mainThread.ask("rowOf", subject, apiId),
  peekOnMainThread: (subject, rule) => mainThread.ask("peek", subject, rule),
  listener: setup.hasListener ? remoteListener(mainThread) : undefined,
  clock,
  metrics,
});
localLimiter.setUnixOffset(setup.unixOffsetMs);
setInterval(() => localLimiter.sweep(Math.ceil(localLimiter.size / sweeps)), sweepEveryMs).unref();

const { onePort, setReady, reload, stopStreams, close } = createPublicApi({
  keys: cache.keys,
  owners: cache.owners,
  usage: remoteUsage(mainThread),
  limiter: limiterByMode({ local: localLimiter, strict: remoteStrictLimiter(mainThread) }),
  checkRootKey: verdicts.check,
  readHolders,
  manages: { carryOut: (call, isRead) => mainThread.ask("carryOut", call, isRead) },
  clock,
  random,
  log: remoteLog(mainThread, setup.settings.logLevel),
  metrics,
  fastPath: setup.fastPath,
  verifyAuth: setup.verifyAuth,
  publicUrl: setup.publicUrl,
  corsOrigins: setup.corsOrigins,
  tracing: setup.tracing,
  settings: setup.settings,
  refreshReadiness: () => mainThread.ask("refreshReadiness"),
});
const thread = String(setup.thread);
metrics.gauge("latchkey_thread_connections", "Open connections of each serving thread.", () => onePort.connections, {
  thread,
});
measureEventLoopDelay(thread, metrics);
