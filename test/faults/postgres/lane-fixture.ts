import pg from "pg";
import { onTestFinished } from "vitest";
import { systemClock } from "../../../src/ambient/clock.ts";
import { createMetrics } from "../../../src/ambient/metrics.ts";
import { createSystemRandom } from "../../../src/ambient/random.ts";
import { openPostgresStore } from "../../../src/store/postgres/open-postgres-store.ts";
import { UsageLane, type UsageLaneOptions } from "../../../src/store/postgres/usage-lane.ts";
import { sampleKey } from "../../contract/sample-keys.ts";
import { TestClock } from "../../support/test-clock.ts";
import { createTestDatabase } from "../../support/test-database.ts";

/** A migrated database that holds these keys, each with so many uses left. */
export async function databaseWith(keyIds: readonly string[], remaining: number): Promise<string> {
  const url = await createTestDatabase();
  const ambient = { clock: systemClock, random: createSystemRandom(), metrics: createMetrics() };
  const store = await openPostgresStore({ ...ambient, url, connectionsMax: 4, lanes: 1, usageTimeoutMs: 20_000 });
  await Promise.all(keyIds.map((id) => store.keys.create({ ...sampleKey(new TestClock(), { remaining }), id })));
  await store.close();
  return url;
}

/** One lane of the ledger on that database, closed with the test. */
export function openLane(url: string, options: Partial<UsageLaneOptions> = {}): UsageLane {
  const ambient = { clock: systemClock, random: createSystemRandom(), metrics: createMetrics() };
  const lane = new UsageLane({ ...ambient, url, timeoutMs: 235, ...options });
  onTestFinished(() => lane.close());
  return lane;
}

/** Runs one statement on a connection of its own. */
export async function query(url: string, text: string): Promise<pg.QueryResult> {
  const client = new pg.Client({ connectionString: url });
  // The server may go away before the connection does.
  client.on("error", () => {});
  await client.connect();
  try {
    return await client.query(text);
  } finally {
    await client.end();
  }
}

/** What has been charged in all, by what the ledger says is left. */
export async function chargedInAll(url: string, keys: number, remaining: number): Promise<number> {
  const { rows } = await query(url, "SELECT sum(remaining)::int AS left FROM key_usage");
  return keys * remaining - rows[0].left;
}

/** The same database through another port. */
export function through(url: string, port: number): string {
  const rerouted = new URL(url);
  rerouted.port = String(port);
  return rerouted.href;
}
