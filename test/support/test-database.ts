import pg from "pg";
import { inject } from "vitest";

/** Whether this run has servers. A suite that needs one says `describe.runIf(hasPostgres)`. */
export const hasPostgres = inject("postgresUrl") !== undefined;

let made = 0;

/** A new and empty database in the run's Postgres. It goes with the server, at the end of the run. */
export async function createTestDatabase(): Promise<string> {
  const url = new URL(inject("postgresUrl") ?? "");
  const name = `test_${process.pid}_${performance.timeOrigin.toFixed(0)}_${++made}`;
  const client = new pg.Client({ connectionString: url.href });
  await client.connect();
  try {
    await client.query(`CREATE DATABASE ${name}`);
  } finally {
    await client.end();
  }
  url.pathname = `/${name}`;
  return url.href;
}
