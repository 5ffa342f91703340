import { setTimeout as delay } from "node:timers/promises";
import { createMetrics } from "../ambient/metrics.ts";
import { LedgerProbe } from "../ratelimit/coordinator/ledger-probe.ts";
import { ReplicaStreams } from "../ratelimit/coordinator/replica-streams.ts";
import { MemoryHub } from "../ratelimit/local/window-hub.ts";
import { malformedResponse, overloadedResponse } from "../rpc/http1-response.ts";
import { createProbes } from "../rpc/probes.ts";
import { createRatelimitService } from "../rpc/ratelimit-service.ts";
import { Readiness } from "../rpc/readiness.ts";
import { createRequestIds } from "../rpc/request-ids.ts";
import { createRequestListener } from "../rpc/request-listener.ts";
import { LedgerWatch } from "../store/ledger-watch.ts";
import { startInternalListener, tlsFilesOf } from "./internal-listener.ts";
import { openStore, storeWaitMs } from "./open-store.ts";
import { Guard } from "./port/guard.ts";
import { OnePort } from "./port/one-port.ts";
import { createCoordinator } from "./rate-limits.ts";
import { ReadyState } from "./ready-state.ts";
import type { RunningServer, ServerOptions } from "./start.ts";
import { waitAtMost } from "./wait-at-most.ts";

const closeGraceMs = 1000;
/** How long a stop waits for replicas to end their streams: permits in an unsent answer would be lost. */
const streamsEndMs = 5000;

/** Serves only the internal rate-limit service, next to the ledger. The public port has only probes. */
export async function startCoordinator(options: ServerOptions): Promise<RunningServer> {
  const { settings, clock, random, log } = options;
  const metrics = createMetrics();
  metrics.addProcessMetrics();
  const ambient = { clock, random, log, metrics };
  const { store, usable } = await openStore({ ...options, metrics, watch: new LedgerWatch(ambient) });
  const undo: (() => unknown)[] = [() => store.close()];
  try {
    const probe = new LedgerProbe(store.permitLanes, clock);
    undo.unshift(() => probe.stop());
    metrics.gauge("latchkey_permit_ledger_up", "Whether the permit ledger answers this coordinator: 1 or 0.", () =>
      Number(!probe.isAway),
    );
    const coordinator = createCoordinator(probe.engines, ambient);
    const streams = new ReplicaStreams();
    const hub = new MemoryHub(() => clock.monotonicMs(), Buffer.from(random.bytes(9)).toString("base64url"));
    const shutdown = new AbortController();
    await waitAtMost(storeWaitMs, usable);
    const internal = await startInternalListener({
      ...ambient,
      host: settings.internalHost,
      port: settings.internalPort,
      secret: settings.internalSecret,
      tls: tlsFilesOf(settings),
      services: createRatelimitService({
        coordinator,
        hub,
        streams,
        clock,
        isLedgerAway: () => probe.isAway,
        shutdownSignal: shutdown.signal,
      }),
    });
    undo.unshift(() => internal.close());
    const readiness = new Readiness(() => store.health?.refresh());
    const readyState = new ReadyState(store.health, (ready) => readiness.set(ready));
    const newRequestId = createRequestIds(options);
    const probes = new OnePort({
      listener: createRequestListener(new Map(createProbes(readiness)), { newRequestId, log }),
      malformed: (error) => malformedResponse(error, newRequestId()),
      guard: new Guard(ambient),
      connectionLimit: {
        connectionsMax: settings.connectionsMax,
        response: () => overloadedResponse(newRequestId()),
        onRejected: () => metrics.shed("connection"),
      },
    });
    const port = await probes.listen(settings.port, settings.host);

    return {
      port,
      internalPort: internal.port,
      ready: usable.then(async () => {
        await readyState.setOpen(true);
        return undefined;
      }),
      async stop() {
        // Replicas are told to use another coordinator. Each ends its stream when it has its answers.
        await readyState.setOpen(false);
        await Promise.all([delay(settings.drainMs), streams.stop(streamsEndMs)]);
        await coordinator.drained();
        probe.stop();
        shutdown.abort();
        await internal.close();
        await probes.close(closeGraceMs);
        await store.close();
      },
    };
  } catch (error) {
    for (const step of undo) await step();
    throw error;
  }
}
