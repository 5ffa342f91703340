import { Secret } from "../../src/domain/secret.ts";
import { startTestServer } from "../support/in-process-server.ts";
import { startLatchkey } from "../support/latchkey-process.ts";
import { readMetric } from "../support/read-metric.ts";
import { watchStandstill } from "../support/standstill.ts";
import { tempFolder } from "../support/temp-folder.ts";
import { createTestDatabase } from "../support/test-database.ts";
import { createRedisDatabase } from "../support/test-redis.ts";
import { testRootKey } from "../support/test-root-key.ts";
import { HttpService } from "./http-service.ts";
import type { History } from "./operations.ts";

export interface StartedService extends Pick<History, "localWindowsAreShared" | "standstillMs"> {
  readonly service: HttpService;
  /** Otherwise stopped with the test. */
  stop(): Promise<unknown>;
  /** Whether each call may have been served by another front: connections are handed out, and callers leave theirs. */
  readonly frontsAreUnknown?: boolean;
}

/** Three servers in this process, on one Postgres and one Redis. */
export async function startReplicas(): Promise<StartedService> {
  const url = await createTestDatabase();
  const redisUrl = await createRedisDatabase();
  const settings = { databaseUrl: new Secret(url), redisUrl: new Secret(redisUrl), logLevel: "error" } as const;
  const servers = await Promise.all([1, 2, 3].map(() => startTestServer({ settings })));
  const baseUrls = servers.map(({ baseUrl }) => baseUrl);
  return {
    service: await HttpService.of(baseUrls),
    stop: () => Promise.all(servers.map((server) => server.stop())),
    localWindowsAreShared: true,
    standstillMs: watchStandstill(),
  };
}

/** One process with two workers, on the embedded store. */
export async function startWorkers() {
  const folder = tempFolder();
  const environment = {
    LATCHKEY_DATA_DIR: folder,
    LATCHKEY_ROOT_KEY: testRootKey,
    LATCHKEY_WORKERS: "2",
    // However busy the machine is.
    LATCHKEY_USAGE_TIMEOUT_MS: "20000",
  };
  const { baseUrl, internalUrl, kill, exited } = await startLatchkey(environment);
  const internalPort = Number(new URL(internalUrl).port);
  const started: StartedService = {
    service: await HttpService.of([baseUrl]),
    stop() {
      kill("SIGKILL");
      return exited;
    },
    localWindowsAreShared: true,
    standstillMs: watchStandstill(),
    frontsAreUnknown: true,
  };
  const connectionsOf = (worker: number) => readMetric(internalPort, `latchkey_worker_connections{worker="${worker}"}`);
  return { ...started, connectionsOf };
}
