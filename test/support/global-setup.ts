import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { artefactFolder, buildArtefact } from "./artefact.ts";
import { pgbouncerBinary } from "./pgbouncer-binary.ts";
import { PostgresServer } from "./postgres-server.ts";
import { type ProxyName, proxyBinary, proxyNames } from "./proxy-binaries.ts";
import { redisBinary } from "./redis-binary.ts";
import { shellProgram } from "./shell-programs.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** The run's own Postgres; undefined in a run without servers. */
    postgresUrl: string | undefined;
    hasRedis: boolean;
    /** Where the proxies are that this run has. */
    proxies: Partial<Record<ProxyName, string>>;
  }
}

/**
 * The program, built once for the whole run; one Postgres, in which each test makes a database of its own. Of Redis, a
 * test starts its own.
 */
export default async function setUp(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  // Called for every project. Values provided for the root project are visible in all.
  if (!project.isRootProject()) return undefined;
  const removeArtefact = await buildArtefact();
  // For the processes of the tests. Each store on SQLite has a thread, for which Node would compile the sources again.
  process.env.NODE_COMPILE_CACHE = join(artefactFolder(), "compiled");
  // Installed here if they are missing, and not by several tests at once.
  shellProgram("openssl");
  shellProgram("curl");
  shellProgram("git");
  shellProgram("zsh");
  const hasServers = process.env.LATCHKEY_TEST_SERVERS !== "off";
  project.provide("hasRedis", hasServers);
  if (!hasServers) {
    console.log("LATCHKEY_TEST_SERVERS=off: every test that needs Postgres or Redis is left out.");
    project.provide("postgresUrl", undefined);
    project.provide("proxies", {});
    return async () => removeArtefact();
  }
  redisBinary();
  pgbouncerBinary();
  project.provide("proxies", Object.fromEntries(proxyNames.map((name) => [name, proxyBinary(name)])));
  const server = await PostgresServer.start();
  project.provide("postgresUrl", server.url());
  return async () => {
    await server.remove();
    removeArtefact();
  };
}
