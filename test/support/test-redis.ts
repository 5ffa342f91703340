import { inject } from "vitest";
import { RedisServer } from "./redis-server.ts";
import { atTestEnd } from "./test-end.ts";

/** Whether this run has servers. A suite that needs one says `describe.runIf(hasRedis)`. */
export const hasRedis = inject("hasRedis");

/** A Redis of the test's own, gone when the test is: a number of a shared one would not keep its channels apart. */
export async function startTestRedis(settings?: Record<string, string>): Promise<RedisServer> {
  const server = await RedisServer.start(settings);
  atTestEnd(() => server.remove());
  return server;
}
