import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { waitAtMost } from "../../ambient/with-timeout.ts";
import { sameValue } from "../../config/same-value.ts";
import type { Settings } from "../../config/settings.ts";
import { slowWaitMaxMs } from "../../domain/deadlines.ts";
import { unixScheme } from "../../link/grpc-stream.ts";
import type { Front } from "../front.ts";
import { openLocalCore } from "../open-local-core.ts";
import type { StartOptions } from "../running-server.ts";
import { serveCore } from "../served-core.ts";
import { toMessage } from "./settings-message.ts";
import { WorkerPool } from "./worker-pool.ts";

/** How long a change waits for workers to act on it. A slower one follows the change feed, within two seconds. */
const workersActMs = 100;
/** The longest path of a Unix socket has 107 bytes on Linux, and 103 elsewhere. */
const pathBytesMax = 103;

/**
 * Fronts in processes of their own. With role `all` the core is here, and workers reach it over a Unix socket, as edges
 * reach a coordinator. With role `edge` each worker has its own links to the coordinators, and this process has no core.
 */
export async function openWorkers(options: StartOptions): Promise<Front> {
  const { live, metrics, teardown } = options;
  const core = options.settings.role === "edge" ? undefined : await openCore(options);
  const pool = new WorkerPool({
    ...options,
    workers: options.settings.workers,
    setupOf: (number) => ({
      number,
      settings: toMessage(settingsOfWorker(live.current, core?.address)),
      mainProcess: core?.mainProcess,
    }),
    refreshReadiness: async () => core?.health?.refresh(),
  });
  teardown.add("workers", () => pool.stop());
  live.follow(() => pool.reload());
  // They start while the store is being opened.
  const started = pool.start();
  started.catch(() => {});
  return {
    serving: pool,
    health: core?.health,
    metrics: pool.mergeMetrics(metrics),
    completeStart: async () => core?.completeStart(),
    async prepare(isStopping) {
      const isReady = (await core?.prepare(isStopping)) ?? true;
      await started;
      return isReady;
    },
  };
}

async function openCore(options: StartOptions) {
  const { settings, live, teardown } = options;
  const opened = await openLocalCore(options);
  // A use can wait for the batch before it.
  const stageTimeoutMs = 2 * settings.usageTimeoutMs + slowWaitMaxMs;
  const served = await serveCore(options, opened, {
    // On a slow machine the call of a worker is late, and the worker still waits for it.
    lateMs: stageTimeoutMs,
    waitFor: (streams, change) => waitAtMost(workersActMs, streams.announce(change)),
  });
  live.follow(async (next, before) => {
    if (!sameValue(next.rootKeys, before.rootKeys)) await served.announce.broadcast({ kind: "rootKeys" });
  });
  const folder = makeSocketFolder(settings.dataDir);
  teardown.add("folder of the socket", () => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, socketName);
  // Who can reach the folder is this user, so nothing else is asked for.
  await served.listen({ host: "", port: 0, path, access: { secrets: [] } });
  return {
    address: `${unixScheme}${path}`,
    health: opened.health,
    prepare: served.prepare,
    completeStart: opened.completeStart,
    mainProcess: { stageTimeoutMs, hasLedger: settings.databaseUrl === undefined },
  };
}

const socketName = "core.sock";

/** A new folder that only this user can enter. */
function makeSocketFolder(dataDir: string): string {
  let failure: unknown = new Error("the paths of the temporary folder and the data folder are too long for a socket");
  for (const parent of [tmpdir(), "/tmp", dataDir]) {
    try {
      const prefix = join(parent, "latchkey-");
      if (Buffer.byteLength(join(`${prefix}XXXXXX`, socketName)) <= pathBytesMax) return mkdtempSync(prefix);
    } catch (error) {
      failure = error;
    }
  }
  throw failure;
}

/** What one worker has of the settings. It knows neither the database nor root keys: the core is here. */
function settingsOfWorker(settings: Settings, coreAddress: string | undefined): Settings {
  const { workers, connectionsMax, callsMax } = settings;
  return {
    ...settings,
    workers: 1,
    connectionsMax: Math.ceil(connectionsMax / workers),
    callsMax: Math.ceil(callsMax / workers),
    ...(coreAddress !== undefined && {
      role: "edge",
      coordinators: [coreAddress],
      databaseUrl: undefined,
      rootKeys: [],
      internalSecrets: [],
      internalTls: undefined,
    }),
  };
}
