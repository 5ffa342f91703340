import { setTimeout as delay } from "node:timers/promises";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { Secret } from "../../../src/domain/secret.ts";
import type { FeedPosition } from "../../../src/store/change-feed.ts";
import { DatabaseRefused, UnsafeTransaction } from "../../../src/store/postgres/pg-error.ts";
import type { Store } from "../../../src/store/store.ts";
import { permitAsk } from "../../contract/permit-asks.ts";
import { sampleKey } from "../../contract/sample-keys.ts";
import { logCommits, loggedCommits } from "../../support/commit-log.ts";
import { FaultyProxy } from "../../support/faulty-proxy.ts";
import { startTestServer } from "../../support/in-process-server.ts";
import { createKey, deleteKey, setRateLimit } from "../../support/manage.ts";
import { ones } from "../../support/ones.ts";
import { openTestStore } from "../../support/open-test-store.ts";
import { PgBouncer, type PgBouncerOptions } from "../../support/pgbouncer.ts";
import { PostgresServer } from "../../support/postgres-server.ts";
import { query } from "../../support/run-statement.ts";
import { TestClock } from "../../support/test-clock.ts";
import { hasPostgres } from "../../support/test-database.ts";

/** Its commits are lost by a crash unless a transaction says otherwise. */
const careless = "careless";
const connectionsMax = 3;
let server: PostgresServer;

beforeAll(async () => {
  if (!hasPostgres) return;
  // Nothing else brings a commit to the disk soon.
  server = await PostgresServer.start({ wal_writer_delay: "10s", autovacuum: "off" });
  await server.query(`CREATE ROLE ${careless} LOGIN SUPERUSER; ALTER ROLE ${careless} SET synchronous_commit = off`);
});
afterAll(() => server?.remove());

/** A new database, and a new pooler before it that knows the careless role. Both URLs are that role's. */
async function pooled(options: PgBouncerOptions): Promise<{ pooler: PgBouncer; direct: string; url: string }> {
  const direct = new URL(await server.createDatabase());
  direct.username = careless;
  const pooler = await PgBouncer.start(server.url(), options, [careless]);
  onTestFinished(() => pooler.remove());
  return { pooler, direct: direct.href, url: pooler.through(direct.href) };
}

function openStore(url: string, lanes = 2): Promise<Store> {
  return openTestStore({ url, connectionsMax, lanes, usageTimeoutMs: 5000 });
}

async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  client.on("error", () => {});
  onTestFinished(() => client.end().catch(() => {}));
  await client.connect();
  return client;
}

/** Renews every connection of the pooler to the server. */
async function recycle(pooler: PgBouncer, url: string): Promise<void> {
  await pooler.admin("RECONNECT");
  // It takes a connection that it was just making for a failed login, and refuses all clients for a moment.
  const isServed = () =>
    query(url, "SELECT 1").then(
      () => true,
      () => false,
    );
  while (!(await isServed())) await delay(20);
}

const counted = (remaining: number) => sampleKey(new TestClock(), { remaining });

describe.runIf(hasPostgres)("behind PgBouncer in transaction mode", () => {
  it("every acknowledged transaction is durable, with any default of the role, on every connection", async () => {
    const { pooler, direct, url } = await pooled({ mode: "transaction", settings: { default_pool_size: 3 } });
    const proxy = await FaultyProxy.start(Number(new URL(url).port));
    const rerouted = new URL(url);
    rerouted.port = String(proxy.port);
    const store = await openStore(rerouted.href, 1);
    await logCommits(direct);
    const lane = store.usageLanes[0];
    const permits = store.permitLanes[0];
    const key = counted(100);
    const strict = sampleKey(new TestClock(), { rateLimit: { mode: "strict", limit: 10, durationMs: 60_000 } });
    let spent = 0;
    let position: FeedPosition | undefined;
    for (let round = 0; round < 4; round++) {
      await recycle(pooler, url);
      await createKey(store.management, { ...counted(1), id: `round ${round}` });
      if (round === 0) await Promise.all([createKey(store.management, key), createKey(store.management, strict)]);
      if (round === 2) expect(await store.rootKeys.addFirst("digest", "start", 1)).toBe(true);
      // One of each ledger's replies is lost, so that its result is recovered; a lane that is new begins a writer.
      let cuts = round === 1 ? 1 : 0;
      proxy.onReply = () => (cuts-- > 0 ? "cut" : "pass");
      const [charge] = (await lane?.settle([{ subject: key.id, cost: 1, count: 2 }])) ?? [];
      expect(charge).toMatchObject({ outcome: "settled", granted: 2 });
      spent += 2;
      cuts = round === 1 ? 1 : 0;
      const [grant] = (await permits?.exchange([{ subject: strict.id, ...permitAsk({ waiting: ones(1) }) }])) ?? [];
      expect(grant).toMatchObject({ outcome: "settled", granted: 1 });
      await deleteKey(store.management, `round ${round}`);
      await setRateLimit(store.management, strict.id, { mode: "strict", limit: 10 + round, durationMs: 60_000 });
      await store.tidy(0);
      const news = await store.changes.read(position);
      expect(news.changed).toEqual(
        round === 0 ? "everything" : expect.arrayContaining([expect.objectContaining({ keyId: `round ${round}` })]),
      );
      position = news.position;
    }
    expect(proxy.cuts).toBe(2);
    const left = "SELECT (SELECT remaining::int FROM counters WHERE subject = $1) AS remaining";
    const ledgers = ["usage_writers", "counters", "permit_windows"];
    for (const table of [...ledgers, "keys", "root_keys", "changes", "change_readers"]) {
      const commits = await loggedCommits(direct, table);
      expect(commits.length, table).toBeGreaterThan(0);
      for (const commit of commits) {
        expect(commit, table).toMatchObject({ synchronous_commit: "on", isolation: "read committed" });
        expect(commit.lock_timeout, table).not.toBe("0");
      }
    }
    await server.kill();
    await server.up();
    const client = await connect(direct);
    expect((await client.query(left, [key.id])).rows).toEqual([{ remaining: 100 - spent }]);
    expect((await client.query("SELECT granted::int FROM permit_windows")).rows).toEqual([{ granted: 4 }]);
    expect((await client.query("SELECT id FROM keys WHERE id LIKE 'round%'")).rows).toEqual([]);
    expect((await client.query("SELECT digest FROM root_keys")).rows).toEqual([{ digest: "digest" }]);
  });

  it("control: a commit that relies on a setting of its session is lost, and another client gets that setting", async () => {
    const { pooler, direct, url } = await pooled({ mode: "transaction", settings: { default_pool_size: 1 } });
    await query(direct, "CREATE TABLE t (n int); INSERT INTO t VALUES (0)");
    await logCommits(direct);
    // So that all before it is on the disk.
    await query(direct, "CHECKPOINT");
    const client = await connect(url);
    await client.query("SET synchronous_commit = on; SET lock_timeout = '399ms'");
    const neighbour = await connect(url);
    expect((await neighbour.query("SHOW lock_timeout")).rows).toEqual([{ lock_timeout: "399ms" }]);
    await recycle(pooler, url);
    await client.query("UPDATE t SET n = 1");
    expect(await loggedCommits(direct, "t")).toMatchObject([{ synchronous_commit: "off" }]);
    await server.kill();
    await server.up();
    expect((await query(direct, "SELECT n FROM t")).rows).toEqual([{ n: 0 }]);
  });

  it("no more uses pass than there are, through crashes of the database and recycled connections", async () => {
    const { pooler, url } = await pooled({ mode: "transaction", settings: { default_pool_size: 4 } });
    const stores = [await openStore(url), await openStore(url)];
    const uses = 300;
    const key = counted(uses);
    await createKey((stores[0] as Store).management, key);
    let passed = 0;
    let isUsedUp = false;
    const spend = async (store: Store, lane: number) => {
      while (!isUsedUp) {
        const results = await store.usageLanes[lane]
          ?.settle([{ subject: key.id, cost: 1, count: 1 }])
          .catch(() => undefined);
        const [result] = results ?? [];
        if (result?.outcome !== "settled") await delay(10);
        else if (result.granted === 0) isUsedUp = true;
        else passed++;
      }
    };
    const spending = Promise.all(stores.flatMap((store) => [spend(store, 0), spend(store, 1)]));
    for (const crashAt of [uses / 3, (2 * uses) / 3]) {
      while (passed < crashAt) await delay(2);
      await recycle(pooler, url);
      await delay(20);
      await server.kill();
      await server.up();
    }
    await spending;
    expect(passed).toBeLessThanOrEqual(uses);
    expect(passed).toBeGreaterThan(uses - 50);
  });

  it("other clients on the same connections never see a setting of ours", async () => {
    const { direct, url } = await pooled({ mode: "transaction", settings: { default_pool_size: 1 } });
    const store = await openStore(url, 1);
    const key = counted(10);
    await createKey(store.management, key);
    await store.usageLanes[0]?.settle([{ subject: key.id, cost: 1, count: 1 }]);
    await store.changes.read((await store.changes.read(undefined)).position);
    const settings = "SELECT name, setting FROM pg_settings WHERE name <> 'application_name' ORDER BY name";
    const neighbour = await connect(url);
    const { rows: own } = await query(direct, settings);
    expect((await neighbour.query(settings)).rows).toEqual(own);
  });

  it("a role whose transactions are not READ COMMITTED is refused at the start, and later not acknowledged", async () => {
    const { pooler, direct, url } = await pooled({ mode: "transaction" });
    const store = await openStore(url, 1);
    const key = counted(10);
    await createKey(store.management, key);
    const name = new URL(direct).pathname.slice(1);
    await query(direct, `ALTER DATABASE ${name} SET default_transaction_isolation = 'repeatable read'`);
    await recycle(pooler, url);
    await expect(store.usageLanes[0]?.settle([{ subject: key.id, cost: 1, count: 1 }])).rejects.toThrow(
      UnsafeTransaction,
    );
    await expect(openStore(url)).rejects.toThrow(/READ COMMITTED.*default_transaction_isolation/);
    expect((await query(direct, "SELECT remaining::int FROM counters")).rows).toEqual([{ remaining: 10 }]);
  });
});

describe.runIf(hasPostgres)("behind PgBouncer", () => {
  it("in session mode uses are settled, and a replica keeps two connections for each lane", async () => {
    const { direct, url } = await pooled({ mode: "session" });
    const lanes = 2;
    const store = await openStore(url, lanes);
    const key = counted(10);
    await createKey(store.management, key);
    const lane = store.usageLanes[0];
    for (let left = 9; left > 6; left--) {
      const settled = { outcome: "settled", granted: 1, remaining: left };
      expect(await lane?.settle([{ subject: key.id, cost: 1, count: 1 }])).toEqual([settled]);
    }
    const counting =
      "SELECT count(*)::int AS n FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()";
    const { n } = (await query(direct, counting)).rows[0];
    expect(n).toBeGreaterThanOrEqual(2 * lanes);
    expect(n).toBeLessThanOrEqual(2 * lanes + connectionsMax);
  });

  it("in session mode a pool that is too small for the lanes is waited for, with a reason in the log", async () => {
    const { direct, url } = await pooled({ mode: "session", settings: { default_pool_size: 1 } });
    // With its tables, so that the lanes are what it waits for.
    await (await openStore(direct)).close();
    const settings = { databaseUrl: new Secret(url), usageTimeoutMs: 235 };
    const { logLines } = await startTestServer({ settings, waitUntilReady: false });
    const waiting = () => logLines.find((line) => line.includes("waiting for the database"));
    while (waiting() === undefined) await delay(10);
    expect(JSON.parse(waiting() ?? "{}")).toMatchObject({ reason: "no reply in time" });
  });

  it("in statement mode it is refused at the start, by name", async () => {
    const { url } = await pooled({ mode: "statement" });
    const opening = openStore(url);
    await expect(opening).rejects.toThrow(DatabaseRefused);
    await expect(opening).rejects.toThrow("PgBouncer in statement pooling mode");
  });

  it("a database or a user that it does not know is refused at the start, by name", async () => {
    const { url } = await pooled({ mode: "transaction" });
    const [elsewhere, stranger] = [new URL(url), new URL(url)];
    elsewhere.pathname = "/nowhere";
    stranger.username = "stranger";
    await expect(openStore(elsewhere.href)).rejects.toThrow("PgBouncer does not know this database");
    await expect(openStore(stranger.href)).rejects.toThrow("PgBouncer does not let this user in");
  });

  it("options in the URL that it does not pass on are refused at the start, by name, unless it passes them over", async () => {
    const { url } = await pooled({ mode: "transaction" });
    const withOptions = `${url}?options=-c%20work_mem%3D8MB`;
    await expect(openStore(withOptions)).rejects.toThrow(/PgBouncer.*ignore_startup_parameters/);
    const settings = { ignore_startup_parameters: "options" };
    const forgiving = await pooled({ mode: "transaction", settings });
    await openStore(`${forgiving.url}?options=-c%20work_mem%3D8MB`);
  });
});
