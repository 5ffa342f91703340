import { version } from "../../gen/version.ts";
import { measureEventLoopDelay } from "../ambient/event-loop-delay.ts";
import { createMetrics } from "../ambient/metrics.ts";
import { WaitingRoom } from "../domain/waiting-room.ts";
import { reportCertificates } from "./certificates.ts";
import { LiveSettings } from "./live-settings.ts";
import { Reload } from "./reload.ts";
import type { RunningServer, ServerOptions } from "./running-server.ts";
import { startCoordinator } from "./start-coordinator.ts";
import { startFront } from "./start-front.ts";
import { Teardown } from "./teardown.ts";

/**
 * A process is a front (public API, key cache, permit pools, local windows), a core (store, ledgers, root keys), or both:
 * `all` is a front with its core, `edge` a front that reaches its core over links, `coordinator` a core for edges.
 */
export async function startServer(options: ServerOptions): Promise<RunningServer> {
  const { settings, clock, log, environment } = options;
  const metrics = createMetrics();
  metrics.addProcessMetrics();
  metrics.gauge("latchkey_build_info", "Always 1; its labels say what runs here.", () => 1, {
    version,
    node: process.versions.node,
    role: settings.role,
  });
  const waitingRoom = new WaitingRoom(settings.callsMax, () => metrics.shed("call"));
  const help = "Calls that wait for a look-up, a permit or a commit.";
  metrics.gauge("latchkey_calls_waiting", help, () => waitingRoom.taken);
  const teardown = new Teardown(log);
  const live = new LiveSettings(settings);
  live.follow(({ callsMax, logLevel }) => {
    waitingRoom.resize(callsMax);
    log.setLevel(logLevel);
  });
  reportCertificates(live, { clock, log, metrics });
  teardown.add("event loop delay", measureEventLoopDelay("main", metrics));
  const start = settings.role === "coordinator" ? startCoordinator : startFront;
  try {
    const server = await start({ ...options, live, metrics, waitingRoom, teardown });
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
