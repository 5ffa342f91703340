import { askSharedServers, hasServers } from "./ask-shared-servers.ts";
import { redisBinary } from "./redis-binary.ts";
import { RedisServer } from "./redis-server.ts";
import { atTestEnd } from "./test-end.ts";

/** Whether this run has servers. A suite that needs one says `describe.runIf(hasRedis)`. */
export const hasRedis = hasServers;

/** The URL of a new database in the run's Redis. Nobody else uses it, and messages of other databases do not reach it. */
export function createRedisDatabase(): Promise<string> {
  // Installed here if it is missing: the process that has the server must not be held up.
  redisBinary();
  return askSharedServers("redis");
}

/** A Redis of the test's own, for a test that stops it or changes its settings. It is gone when the test is. */
export async function startTestRedis(settings?: Record<string, string>): Promise<RedisServer> {
  const server = await RedisServer.start(settings);
  atTestEnd(() => server.remove());
  return server;
}
