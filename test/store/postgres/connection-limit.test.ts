import { describe, expect, it, onTestFinished } from "vitest";
import { systemClock } from "../../../src/ambient/clock.ts";
import { createMetrics } from "../../../src/ambient/metrics.ts";
import { createSystemRandom } from "../../../src/ambient/random.ts";
import { openPgEngine } from "../../../src/store/postgres/open-postgres-store.ts";
import { PgServers } from "../../../src/store/postgres/pg-servers.ts";
import { UsageLane } from "../../../src/store/postgres/usage-lane.ts";
import { sampleKey } from "../../contract/sample-keys.ts";
import { surely } from "../../faults/postgres/lane-fixture.ts";
import { createKey } from "../../support/manage.ts";
import { openTestStore } from "../../support/open-test-store.ts";
import { query } from "../../support/run-statement.ts";
import { TestClock } from "../../support/test-clock.ts";
import { createEmptyDatabase, hasPostgres } from "../../support/test-database.ts";

const ambient = { clock: systemClock, random: createSystemRandom(), metrics: createMetrics() };
let roles = 0;

/** A database of a role's own that may have so many connections. */
async function limitedTo(connections: number): Promise<{ url: string; limit: (connections: number) => Promise<void> }> {
  const admin = await createEmptyDatabase();
  const url = new URL(admin);
  const role = `limited_${process.pid}_${++roles}`;
  const limit = async (to: number) => void (await query(admin, `ALTER ROLE ${role} CONNECTION LIMIT ${to}`));
  await query(admin, `CREATE ROLE ${role} LOGIN; ALTER DATABASE ${url.pathname.slice(1)} OWNER TO ${role}`);
  await limit(connections);
  url.username = role;
  return { url: url.href, limit };
}

function openStore(url: string) {
  return openTestStore({ url, connectionsMax: 10, lanes: 1, usageTimeoutMs: 2000 });
}

/** The code that a log line of the failure carries. */
async function originCodeOf(work: Promise<unknown>): Promise<unknown> {
  const error = await work.then(
    () => undefined,
    (thrown: Error) => thrown,
  );
  return (error?.cause as { code?: unknown } | undefined)?.code;
}

describe.runIf(hasPostgres)("a role with a limit of connections", () => {
  it("makes changes wait for an open connection if no more can be opened", async () => {
    // Two are the lanes'.
    const { url } = await limitedTo(2 + 2);
    // On a busy machine, connections of the migration that are closed still count for a while.
    const store = await surely(() => openStore(url));
    const keys = Array.from({ length: 20 }, () => sampleKey(new TestClock(), { remaining: 1 }));
    await Promise.all(keys.map((key) => createKey(store.management, key)));
    const found = await Promise.all(keys.map((key) => surely(async () => store.keys.findByDigest(key.secretDigest))));
    expect(found.filter((key) => key !== undefined)).toHaveLength(keys.length);
  });

  it("is reported by its code if no connection can be opened, and the store waits", async () => {
    const { url, limit } = await limitedTo(0);
    const engine = openPgEngine({ url, connectionsMax: 2 });
    onTestFinished(() => engine.close());
    expect(await originCodeOf(engine.check())).toBe("53300");
    const waiting = engine.ledgerNowMs();
    await limit(-1);
    expect(await waiting).toBeGreaterThan(0);
  });
});

describe.runIf(hasPostgres)("a database that takes no changes", () => {
  it("is told of by its code, by a lane and by the check", async () => {
    const url = await createEmptyDatabase();
    const store = await openStore(url);
    await store.check();
    await query(url, `ALTER DATABASE ${new URL(url).pathname.slice(1)} SET default_transaction_read_only = on`);
    const lane = new UsageLane({ ...ambient, servers: new PgServers(url), timeoutMs: 1000 });
    onTestFinished(() => lane.close());
    expect(await originCodeOf(lane.settle([{ subject: "k", cost: 1, count: 1 }]))).toBe("25006");
    const another = await originCodeOf(openStore(url).then((opened) => opened.check()));
    expect(another).toBe("25006");
  });
});
