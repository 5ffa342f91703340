// A thread that serves the public port together with others. The main thread owns everything that may exist only once.
import { parentPort, workerData } from "node:worker_threads";
import { createThreadClock } from "../ambient/clock.ts";
import { createMetrics } from "../ambient/metrics.ts";
import { createSystemRandom } from "../ambient/random.ts";
import { WaitingRoom } from "../domain/waiting-room.ts";
import { WindowRows } from "../domain/window-rows.ts";
import { limiterByMode } from "../ratelimit/limiter-by-mode.ts";
import { SharedRowGuard } from "../ratelimit/local/shared-row-guard.ts";
import { numbersFrom } from "../ratelimit/local/window-numbers.ts";
import { CachedKeyStore } from "../store/cached-key-store.ts";
import type { HomeMethods, ServingMethods, ServingSetup } from "../threads/methods.ts";
import {
  type HomeLink,
  remoteKeys,
  remoteListener,
  remoteLog,
  remoteStrictLimiter,
  remoteUsage,
} from "../threads/remote-home.ts";
import { SharedLimiter } from "../threads/shared-limiter.ts";
import { ThreadLink } from "../threads/thread-link.ts";
import { KnownRootKeys } from "../usecases/root-keys.ts";
import { lookupsQueuedMax } from "./key-cache.ts";
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
const rootKeys = new KnownRootKeys();

const methods: ServingMethods = {
  listen: (port, host) => onePort.listen(port, host, { reusePort: true }),
  learnRootKeys: (digests) => rootKeys.learn(digests),
  setReady: (ready) => setReady(ready),
  tellTimeBy: (unixOffsetMs) => localLimiter.tellTimeBy(unixOffsetMs),
  forget: (change) => keys.forget(change),
  forgetAll: () => keys.forgetAll(),
  snapshot: () => metrics.snapshot(),
  startClosing: () => onePort.startClosing(),
  stopStreams: () => stopStreams(),
  close: (graceMs) => onePort.close(graceMs),
};
if (parentPort === null) throw new Error("this runs in a worker thread");
const home: HomeLink = new ThreadLink<ServingMethods, HomeMethods>(parentPort, methods);
parentPort.on("message", (batch) => home.hear(batch));

const keys = new CachedKeyStore(
  remoteKeys(home),
  {
    ttlMs: setup.cacheTtlMs,
    keysMax: setup.cacheKeysMax,
    // The main thread bounds the look-ups of all threads together.
    lookupsMax: lookupsQueuedMax,
    lookupsQueuedMax,
    room: new WaitingRoom(callersMax),
  },
  { clock, metrics },
);
const localLimiter = new SharedLimiter({
  rows: new WindowRows(setup.windows.rows, numbersFrom(random)),
  guard: new SharedRowGuard(setup.windows.guard),
  askForRow: (keyId) => home.ask("rowOf", keyId),
  lookAtHome: (keyId, rule) => home.ask("look", keyId, rule),
  listener: setup.hasListener ? remoteListener(home) : undefined,
  clock,
  metrics,
});
localLimiter.tellTimeBy(setup.unixOffsetMs);
setInterval(() => localLimiter.sweep(Math.ceil(localLimiter.size / sweeps)), sweepEveryMs).unref();

const { onePort, setReady, stopStreams } = createPublicApi({
  keys,
  usage: remoteUsage(home),
  limiter: limiterByMode({ local: localLimiter, strict: remoteStrictLimiter(home) }),
  isRootKey: (presented) => rootKeys.has(presented),
  clock,
  random,
  log: remoteLog(home, setup.debug),
  metrics,
  fastPath: setup.fastPath,
  connectionsMax: setup.connectionsMax,
  refreshReadiness: () => home.ask("refreshReadiness"),
});
metrics.gauge("latchkey_cached_keys", "Keys held in memory.", () => keys.size);
metrics.gauge("latchkey_thread_connections", "Open connections of each serving thread.", () => onePort.connections, {
  thread: String(setup.thread),
});
