import { setTimeout as delay } from "node:timers/promises";
import type { ServedCore } from "../core/serve/answer-call.ts";
import { FrontStreams } from "../core/serve/front-streams.ts";
import type { ServeFrontDeps } from "../core/serve/serve-front.ts";
import { changesMax } from "../core/wire-management.ts";
import { MemoryHub } from "../ratelimit/local/window-hub.ts";
import type { ErrorCode } from "../rpc/api-error.ts";
import { createCoreService } from "../rpc/core-service.ts";
import { ErrorLog } from "../rpc/error-log.ts";
import { malformedResponse, overloadedResponse } from "../rpc/http1-response.ts";
import { createProbes } from "../rpc/probes.ts";
import { Readiness } from "../rpc/readiness.ts";
import { createRequestIds } from "../rpc/request-ids.ts";
import { createRequestListener } from "../rpc/request-listener.ts";
import { announceChanges } from "../store/announce-changes.ts";
import type { Change } from "../store/changes.ts";
import { FeedRelay } from "../store/feed-relay.ts";
import { becomeReady } from "./become-ready.ts";
import { createCarryOut } from "./carry-out.ts";
import { ChangeFollower } from "./change-follower.ts";
import { connectChanges } from "./changes.ts";
import { internalAccessOf, startInternalListener } from "./internal-listener.ts";
import { type LocalCore, openLocalCore } from "./open-local-core.ts";
import { storeWaitMs } from "./open-store.ts";
import { Guard } from "./port/guard.ts";
import { OnePort } from "./port/one-port.ts";
import { tlsOptionsOf } from "./public-api.ts";
import { ReadyState } from "./ready-state.ts";
import type { StartedServer, StartOptions } from "./running-server.ts";
import { servingSettingsOf } from "./serving.ts";
import { waitAtMost } from "./wait-at-most.ts";

const closeGraceMs = 1000;
const notFoundHint = "this is a coordinator, with GET /livez and /readyz; methods are called on an edge";
/** How long a stop waits for edges to end their streams: permits in an unsent answer would be lost. */
const streamsEndMs = 5000;

/** Serves a core to edges on the internal port, near the ledger. The public port has only probes. */
export async function startCoordinator(options: StartOptions): Promise<StartedServer> {
  const { settings, live, clock, random, teardown } = options;
  const opened = await openLocalCore(options);
  const { core, usable, health } = opened;
  const replica = Buffer.from(random.bytes(9)).toString("base64url");
  const relay = new FeedRelay({ clock, feed: core.changes });
  const follower = new ChangeFollower({
    ...options,
    feed: core.changes,
    caches: [],
    onChange: () => {},
    onNews: (news, currentAtMs) => relay.onNews(news, currentAtMs),
  });
  teardown.add("change feed", () => follower.stop());
  // A message of another replica says that there is news.
  const onChange = () => follower.hurry();
  const changes = await connectChanges({ ...options, caches: [], onChange, replica });
  teardown.add("messages about changes", () => changes.close());
  const { checkRootKey, readHolders, manages } = opened;
  const carryOut = createCarryOut({ ...options, checkRootKey });
  const served: ServedCore = {
    ...core,
    checkRootKey,
    readHolders,
    async carryOut(call) {
      const changed: Change[] = [];
      const recorder = {
        async broadcast(change: Change) {
          if (changed.length <= changesMax) changed.push(change);
        },
      };
      const answer = await carryOut(call, announceChanges(manages.management, [recorder, changes]));
      return answer && { answer, changed };
    },
    changes: relay,
    feedPosition: () => relay.position,
    windows: new MemoryHub({
      nowMs: () => clock.monotonicMs(),
      windowsMax: settings.windowsMax,
      freeStandingMax: settings.freeWindowsMax,
      epoch: replica,
    }),
  };

  let isPrepared = false;
  const readiness = new Readiness(() => health?.refresh());
  const readyState = new ReadyState(health, (ready) => readiness.set(ready));
  teardown.add("start", () => readyState.startStop());
  const prepare = async () => {
    await usable;
    await follower.start();
    await opened.prepare(() => readyState.isStopping);
    isPrepared = true;
  };
  const prepared = prepare();
  // `ready` rejects with the failure.
  prepared.catch(() => {});
  await waitAtMost(storeWaitMs, prepared);
  const streams = new FrontStreams();
  // Until it knows the root keys and the first news, edges should ask another.
  const isLedgerAway = () => !isPrepared || (opened.probe?.isAway ?? false);
  const internal = await listenToEdges(options, opened, { core: served, streams, isLedgerAway });
  const probes = createProbesPort(options, readiness);
  live.follow((next) => {
    probes.setConnectionsMax(next.connectionsMax);
    const tls = tlsOptionsOf(servingSettingsOf(next));
    if (tls !== undefined) probes.setTls(tls);
  });
  const port = await probes.listen(settings.port, settings.host);
  teardown.add("public port", () => probes.close(closeGraceMs));

  return {
    port,
    internalPort: internal.port,
    ready: becomeReady(prepared, opened, readyState),
    async stop() {
      // Edges are told to use another coordinator. Each ends its stream when it has its answers.
      await readyState.close();
      await Promise.all([delay(live.current.drainMs), streams.stop(streamsEndMs)]);
      await teardown.run();
    },
  };
}

async function listenToEdges(
  options: StartOptions,
  opened: LocalCore,
  served: Pick<ServeFrontDeps, "core" | "streams" | "isLedgerAway">,
) {
  const { settings, live, clock, log, teardown } = options;
  const shutdown = new AbortController();
  const internal = await startInternalListener({
    ...options,
    host: settings.internalHost,
    port: settings.internalPort,
    access: internalAccessOf(settings),
    services: createCoreService({
      ...served,
      coordinator: opened.coordinator,
      clock,
      log,
      ledgerPathMs: () => opened.core.pathMs ?? 0,
      shutdownSignal: shutdown.signal,
    }),
  });
  live.follow((next) => internal.reload(internalAccessOf(next)));
  teardown.add("internal port", async () => {
    shutdown.abort();
    await internal.close();
  });
  return internal;
}

function createProbesPort(options: StartOptions, readiness: Readiness): OnePort {
  const { settings, log, metrics } = options;
  const newRequestId = createRequestIds(options);
  const errorLog = new ErrorLog(options);
  const onRefused = (code: ErrorCode, requestId: string) => {
    metrics.requestRefused(code);
    errorLog.add(code, requestId);
  };
  return new OnePort({
    listener: createRequestListener(new Map(createProbes(readiness)), { newRequestId, log, notFoundHint, onRefused }),
    malformed: (error) => malformedResponse(error, newRequestId(), onRefused),
    guard: new Guard(options),
    tls: tlsOptionsOf(servingSettingsOf(settings)),
    onHandshakeFailed: () => metrics.handshakeFailed("public"),
    connectionLimit: {
      connectionsMax: settings.connectionsMax,
      response() {
        const requestId = newRequestId();
        errorLog.add("SERVICE_UNAVAILABLE", requestId);
        return overloadedResponse(requestId);
      },
      onRejected: () => metrics.shed("connection"),
    },
  });
}
