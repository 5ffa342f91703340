import type { TestProject } from "vitest/node";
import { PostgresServer } from "./postgres-server.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** The run's own Postgres; undefined in a run without servers. */
    postgresUrl: string | undefined;
  }
}

/** One Postgres for the whole run; each test makes a database of its own in it. */
export default async function setUp(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  if (process.env.LATCHKEY_TEST_SERVERS === "off") {
    console.log("LATCHKEY_TEST_SERVERS=off: every test that needs Postgres is left out.");
    project.provide("postgresUrl", undefined);
    return undefined;
  }
  const server = await PostgresServer.start();
  project.provide("postgresUrl", server.url());
  return () => server.remove();
}
