import { setTimeout as delay } from "node:timers/promises";
import { version } from "../../gen/version.ts";
import { waitAtMost } from "../ambient/with-timeout.ts";
import { reportCertificates } from "./certificates.ts";
import { openCoordinator } from "./coordinator.ts";
import { openFront } from "./front.ts";
import { type InternalAddress, internalAccessOf, startInternalListener } from "./internal-listener.ts";
import { storeWaitMs } from "./open-store.ts";
import { ReadyState } from "./ready-state.ts";
import { Reload } from "./reload.ts";
import { createProcessParts, type RunningServer, type ServerOptions, type StartOptions } from "./running-server.ts";
import { openWorkers } from "./workers/open-workers.ts";

/** Clients with open connections have this long for one more request, whose answer says that they should leave. */
const lastRequestMs = 250;
const shutdownGraceMs = 10_000;

/**
 * A process is a front (public API, key cache, permit pools, local windows), a core (store, ledgers, root keys), or both:
 * `all` is a front with its core, `edge` a front that reaches its core over links, `coordinator` a core for edges.
 */
export async function startServer(options: ServerOptions): Promise<RunningServer> {
  const { settings, clock, log, environment } = options;
  const parts = createProcessParts(options, "main");
  const { metrics, waitingRoom, live, teardown } = parts;
  metrics.gauge("latchkey_build_info", "Always 1; its labels say what runs here.", () => 1, {
    version,
    node: process.versions.node,
    role: settings.role,
  });
  const help = "Calls that wait for a look-up, a permit or a commit.";
  metrics.gauge("latchkey_calls_waiting", help, () => waitingRoom.taken);
  reportCertificates(live, { clock, log, metrics });
  try {
    const server = await start({ ...options, ...parts });
    if (environment === undefined) return { ...server, reload: async () => false };
    // Last, so that it ends first: nothing is taken over while parts are being stopped.
    const reload = new Reload({ environment, live, log });
    teardown.add("reload", () => reload.stop());
    return { ...server, reload: () => reload.check() };
  } catch (error) {
    await teardown.run();
    throw error;
  }
}

/** The steps of a start in their order, and of a stop. */
async function start(options: StartOptions): Promise<Omit<RunningServer, "reload">> {
  const { settings, live, teardown } = options;
  const open = settings.role === "coordinator" ? openCoordinator : settings.workers > 1 ? openWorkers : openFront;
  const opened = await open(options);
  const { serving, health, metrics } = opened;

  const readyState = new ReadyState(health, (ready) => serving.setReady(ready));
  teardown.add("start", () => readyState.startStop());
  const prepare = async () => {
    // Before the first connection is accepted. If the root key is not generated yet, no caller can have one.
    if (await opened.prepare(() => readyState.isStopping)) await readyState.open();
  };
  const prepared = prepare();
  // `ready` rejects with the failure.
  prepared.catch(() => {});
  await waitAtMost(storeWaitMs, prepared);
  const listenForMetrics = async (at: InternalAddress) => {
    const internal = await startInternalListener({ ...options, metrics, ...at, services: new Map() });
    teardown.add("internal port", () => internal.close());
    return internal;
  };
  const internal = await (opened.listenInternally ?? listenForMetrics)({
    host: settings.internalHost,
    port: settings.internalPort,
    access: internalAccessOf(settings),
  });
  live.follow((next) => internal.reload(internalAccessOf(next)));
  const port = await serving.listen(settings.port, settings.host);
  teardown.add("public port", () => serving.close(shutdownGraceMs));
  const becomeReady = async () => {
    await prepared;
    const generated = await opened.completeStart();
    await readyState.open();
    return generated;
  };
  return {
    port,
    internalPort: internal.port,
    ready: becomeReady(),
    async stop() {
      // First load balancers see that this replica is not ready, and have time to react while all requests are served.
      // Then clients learn that they should leave, also those between two requests. Then everything stops, the store last.
      await readyState.close();
      const { drainMs } = live.current;
      await Promise.all([delay(drainMs), opened.stopFronts?.()]);
      serving.startShutdown();
      await delay(Math.min(drainMs, lastRequestMs));
      serving.stopStreams();
      await teardown.run();
    },
  };
}
