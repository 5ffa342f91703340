import { createRefusals, ErrorLog } from "../rpc/error-log.ts";
import { servedByNode } from "../rpc/http-handler.ts";
import { createProbes } from "../rpc/probes.ts";
import { Readiness } from "../rpc/readiness.ts";
import { createRequestIds } from "../rpc/request-ids.ts";
import { createRequestListener } from "../rpc/request-listener.ts";
import type { Front } from "./front.ts";
import { openLocalCore } from "./open-local-core.ts";
import { Guard } from "./port/guard.ts";
import { OnePort } from "./port/one-port.ts";
import { tlsOptionsOf } from "./public-api.ts";
import type { StartOptions } from "./running-server.ts";
import { serveCore } from "./served-core.ts";

const closeGraceMs = 1000;
/** An edge near its coordinator has given a call up by then. */
const callLateMs = 1000;
const notFoundHint = "this is a coordinator, with GET /livez and /readyz; methods are called on an edge";

/** A core for edges, which reach it on the internal port. It is near the ledger. The public port has only probes. */
export async function openCoordinator(options: StartOptions): Promise<Front> {
  const opened = await openLocalCore(options);
  // Edges follow a change by the feed, within two seconds: they can be far away.
  const core = await serveCore(options, opened, { lateMs: callLateMs, waitFor: async () => {} });
  const readiness = new Readiness(() => opened.health?.refresh());
  const probes = createProbesPort(options, readiness);
  options.live.follow((next) => {
    probes.setConnectionsMax(next.connectionsMax);
    probes.setTls(tlsOptionsOf(next));
  });
  return {
    serving: {
      listen: (port, host) => probes.listen(port, host),
      setReady: (ready) => readiness.set(ready),
      startShutdown: () => probes.startShutdown(),
      stopStreams() {},
      close: () => probes.close(closeGraceMs),
    },
    health: opened.health,
    metrics: options.metrics,
    completeStart: opened.completeStart,
    prepare: core.prepare,
    listenInternally: core.listen,
    // Edges learn that they should use another coordinator. Each ends its stream when it has its answers.
    stopFronts: core.stopStreams,
  };
}

function createProbesPort(options: StartOptions, readiness: Readiness): OnePort {
  const { settings, log, metrics } = options;
  const newRequestId = createRequestIds(options);
  const { onRefused, malformed, overloaded } = createRefusals(new ErrorLog(options), newRequestId, metrics);
  return new OnePort({
    listener: createRequestListener(servedByNode(createProbes(readiness)), {
      newRequestId,
      log,
      notFoundHint,
      onRefused,
    }),
    malformed,
    guard: new Guard(options),
    tls: tlsOptionsOf(settings),
    onHandshakeFailed: () => metrics.handshakeFailed("public"),
    connectionLimit: {
      connectionsMax: settings.connectionsMax,
      response: overloaded,
      onRejected: () => metrics.shed("connection"),
    },
  });
}
