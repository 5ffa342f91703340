import { inject } from "vitest";
import { query } from "./run-statement.ts";

/** Whether this run has servers. A suite that needs one says `describe.runIf(hasPostgres)`. */
export const hasPostgres = inject("postgresUrl") !== undefined;

let made = 0;

/** A new and empty database in the run's Postgres, with these options. It goes with the server, at the end of the run. */
export async function createTestDatabase(options = ""): Promise<string> {
  const url = new URL(inject("postgresUrl") ?? "");
  const name = `test_${process.pid}_${performance.timeOrigin.toFixed(0)}_${++made}`;
  await query(url.href, `CREATE DATABASE ${name} ${options}`);
  url.pathname = `/${name}`;
  return url.href;
}
