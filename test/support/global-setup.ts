import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { artefactFolder, buildArtefact } from "./artefact.ts";
import { SharedServers } from "./shared-servers.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** Where to ask for the run's own Postgres and Redis; undefined in a run without servers. */
    sharedServers: string | undefined;
  }
}

/** The program, built once for the whole run, and the servers that all test files share. */
export default async function setUp(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  // Called for every project. Values provided for the root project are visible in all.
  if (!project.isRootProject()) return undefined;
  const removeArtefact = await buildArtefact();
  // For the processes of the tests. Each store on SQLite has a thread, for which Node would compile the sources again.
  process.env.NODE_COMPILE_CACHE = join(artefactFolder(), "compiled");
  if (process.env.LATCHKEY_TEST_SERVERS === "off") {
    console.log("LATCHKEY_TEST_SERVERS=off: every test that needs Postgres or Redis is left out.");
    project.provide("sharedServers", undefined);
    return async () => removeArtefact();
  }
  const servers = await SharedServers.listen();
  project.provide("sharedServers", servers.url);
  return async () => {
    await servers.stop();
    removeArtefact();
  };
}
