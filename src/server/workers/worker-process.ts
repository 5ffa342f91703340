// A worker: a front in a process of its own. The main process starts it, hands it connections and stops it.
import net from "node:net";
import { systemClock } from "../../ambient/clock.ts";
import { keepTickShape } from "../../ambient/keep-tick-shape.ts";
import { createProcessLog } from "../../ambient/log-output.ts";
import { createSystemRandom } from "../../ambient/random.ts";
import type { Settings } from "../../config/settings.ts";
import { openFront } from "../front.ts";
import { createProcessParts } from "../running-server.ts";
import type { MainMethods, WorkerMethods, WorkerSetup } from "./methods.ts";
import { ProcessLink } from "./process-link.ts";
import { fromMessage } from "./settings-message.ts";

keepTickShape();
// Signals are for the main process, which says what to do. A terminal sends them to all processes.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => {});
// The main process has ended, or has stopped this worker.
process.on("disconnect", () => process.exit());

type StartedWorker = Awaited<ReturnType<typeof startWorker>>;
let started: StartedWorker | undefined;
/** The main process calls nothing before `start`. */
const worker = () => started as StartedWorker;

const main = new ProcessLink<WorkerMethods, MainMethods>(process, {
  async start(setup) {
    started = await startWorker(setup);
  },
  takeConnection(handle) {
    // None if the client has left meanwhile.
    if (handle !== undefined) worker().serving.onePort.accept(toSocket(handle));
  },
  setReady: (ready) => worker().setReady(ready),
  reload: (settings) => worker().live.replace(fromMessage(settings) as Settings),
  snapshot: async () => (await started?.metrics.snapshot()) ?? [],
  startShutdown: () => worker().serving.startShutdown(),
  stopStreams: () => worker().serving.stopStreams(),
  close: (graceMs) => worker().serving.close(graceMs),
  stop: () => worker().teardown.run(),
});

async function startWorker({ number, settings: message, mainProcess }: WorkerSetup) {
  const settings = fromMessage(message) as Settings;
  const log = createProcessLog(settings, { worker: number });
  const onFatal = (cause: unknown) => {
    log.error("the worker cannot go on", cause);
    process.exit(1);
  };
  process.on("uncaughtException", onFatal);
  process.on("unhandledRejection", onFatal);
  const parts = createProcessParts({ settings, log }, String(number));
  const { live, metrics, teardown } = parts;
  const front = await openFront({
    ...parts,
    settings,
    log,
    onFatal,
    clock: systemClock,
    random: createSystemRandom(),
    worker: number,
    mainProcess,
    refreshReadiness: () => main.ask("refreshReadiness"),
  });
  const { onePort } = front.serving;
  metrics.gauge("latchkey_worker_connections", "Open connections of each worker.", () => onePort.connections);
  let isStopping = false;
  teardown.add("start", () => {
    isStopping = true;
  });
  const prepared = front.prepare(() => isStopping);
  prepared.catch(onFatal);
  let isWanted = false;
  return {
    ...front,
    live,
    metrics,
    teardown,
    async setReady(ready: boolean) {
      isWanted = ready;
      if (ready) await prepared;
      front.serving.setReady(isWanted);
    },
  };
}

/** As a listener of this process would make it. */
function toSocket(handle: unknown): net.Socket {
  return new net.Socket({ handle, readable: true, writable: true } as net.SocketConstructorOpts);
}
