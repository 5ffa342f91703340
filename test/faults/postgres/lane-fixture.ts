import pg from "pg";
import { systemClock } from "../../../src/ambient/clock.ts";
import { createMetrics, type Metrics } from "../../../src/ambient/metrics.ts";
import { createSystemRandom } from "../../../src/ambient/random.ts";
import type { NewKey } from "../../../src/domain/key.ts";
import { Unavailable } from "../../../src/domain/unavailable.ts";
import type { GuardedLaneOptions } from "../../../src/store/postgres/guarded-lane.ts";
import { openPostgresStore, type PgEngine } from "../../../src/store/postgres/open-postgres-store.ts";
import { PermitLane } from "../../../src/store/postgres/permit-lane.ts";
import { PgServers } from "../../../src/store/postgres/pg-servers.ts";
import { UsageLane } from "../../../src/store/postgres/usage-lane.ts";
import { sql } from "../../../src/store/sql/sql.ts";
import { sampleKey } from "../../contract/sample-keys.ts";
import { FaultyProxy } from "../../support/faulty-proxy.ts";
import { createKey } from "../../support/manage.ts";
import { query } from "../../support/run-statement.ts";
import { TestClock } from "../../support/test-clock.ts";
import { createTestDatabase } from "../../support/test-database.ts";
import { atTestEnd } from "../../support/test-end.ts";

/** A migrated database that holds these keys, each with so many uses left. */
export function databaseWith(keyIds: readonly string[], remaining: number): Promise<string> {
  return databaseOf(keyIds, { remaining });
}

/** A migrated database that holds these keys, each with this strict limit. */
export function databaseWithLimits(keyIds: readonly string[], limit: number, durationMs = 3_600_000): Promise<string> {
  return databaseOf(keyIds, { rateLimit: { mode: "strict", limit, durationMs } });
}

async function databaseOf(keyIds: readonly string[], given: Partial<NewKey>): Promise<string> {
  const url = await createTestDatabase();
  const ambient = { clock: systemClock, random: createSystemRandom(), metrics: createMetrics() };
  const store = await openPostgresStore({ ...ambient, url, connectionsMax: 4, lanes: 1, usageTimeoutMs: 20_000 });
  await Promise.all(keyIds.map((id) => createKey(store.management, { ...sampleKey(new TestClock(), given), id })));
  // Before the test begins: its own connections are all there are.
  await store.close();
  return url;
}

/** One lane of the usage ledger on that database, closed with the test. */
export function openLane(url: string, options: Partial<GuardedLaneOptions> = {}): UsageLane {
  return closedWithTest(new UsageLane(laneOptions(url, options)));
}

/** One lane of the permit ledger on that database, closed with the test. */
export function openPermitLane(url: string, options: Partial<GuardedLaneOptions> = {}): PermitLane {
  return closedWithTest(
    new PermitLane({ ...laneOptions(url, options), makeWindows: () => Promise.reject(new Error("not in this test")) }),
  );
}

export function laneOptions(url: string, options: Partial<GuardedLaneOptions>): GuardedLaneOptions {
  const ambient = { clock: systemClock, random: createSystemRandom(), metrics: createMetrics() };
  return { ...ambient, servers: new PgServers(url), timeoutMs: 235, ...options };
}

function closedWithTest<Lane extends { close(): void }>(lane: Lane): Lane {
  atTestEnd(() => lane.close());
  return lane;
}

/** A link that cuts one reply in ten, and sometimes stalls: the statement was executed, but its result is unknown. */
export async function behindUnreliableLink(url: string): Promise<{ url: string; proxy: FaultyProxy }> {
  const proxy = await FaultyProxy.start(Number(new URL(url).port));
  let replies = 0;
  proxy.onReply = ({ bytesFromServer }) => {
    // A connection must be able to begin.
    if (bytesFromServer < 1500) return "pass";
    replies++;
    if (replies % 10 === 0) return "cut";
    return replies % 97 === 0 ? "stall" : "pass";
  };
  return { url: through(url, proxy.port), proxy };
}

/** The naive engine: it sends a statement again, over a new connection, when no reply comes. */
export function sendUntilAnswered(url: string): (text: string, values: unknown[]) => Promise<pg.QueryResult> {
  let client: pg.Client | undefined;
  const connected = async () => {
    if (client !== undefined) return client;
    const fresh = new pg.Client({ connectionString: url, query_timeout: 200 });
    fresh.on("error", () => {});
    await fresh.connect();
    client = fresh;
    return fresh;
  };
  atTestEnd(() => void client?.end().catch(() => {}));
  return async (text, values) => {
    for (;;) {
      try {
        return await (await connected()).query(text, values);
      } catch {
        client?.end().catch(() => {});
        client = undefined;
      }
    }
  };
}

/** Locks one row of a key, as a foreign transaction would, until it is released. */
export async function lockRow(
  url: string,
  table: "counters" | "permit_windows",
  keyId: string,
): Promise<{ release: () => Promise<void> }> {
  const holder = new pg.Client({ connectionString: url });
  holder.on("error", () => {});
  atTestEnd(() => holder.end());
  await holder.connect();
  await holder.query("BEGIN");
  await holder.query(`SELECT FROM ${table} WHERE subject = $1 FOR UPDATE`, [keyId]);
  return { release: async () => void (await holder.query("ROLLBACK")) };
}

/** Asks again while there is no answer: on a busy machine a short deadline may pass. */
export async function surely<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error;
    }
  }
}

/** Its transactions wait longer for a lock, so that there is time to see them wait. */
export function waitingLonger(engine: PgEngine): PgEngine {
  const longer = sql`SET LOCAL lock_timeout = 0`;
  return { ...engine, atomically: async (queries) => (await engine.atomically([longer, ...queries])).slice(1) };
}

/** Metrics that record the ledger's events: everything beyond sending a batch and reading its reply. */
export function ledgerEvents(): { metrics: Metrics; events: string[] } {
  const events: string[] = [];
  return { metrics: { ...createMetrics(), ledger: (event) => void events.push(event) }, events };
}

/** The total that was charged, calculated from the balances in the ledger. */
export async function chargedInAll(url: string, keys: number, remaining: number): Promise<number> {
  const { rows } = await query(url, "SELECT sum(remaining)::int AS left FROM counters");
  return keys * remaining - rows[0].left;
}

/** The same database through another port. */
export function through(url: string, port: number): string {
  const rerouted = new URL(url);
  rerouted.port = String(port);
  return rerouted.href;
}
