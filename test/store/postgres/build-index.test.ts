import { setTimeout as delay } from "node:timers/promises";
import pg from "pg";
import { describe, expect, it } from "vitest";
import { Unavailable } from "../../../src/domain/unavailable.ts";
import { openPgEngine } from "../../../src/store/postgres/open-postgres-store.ts";
import { DatabaseRefused, orRefused } from "../../../src/store/postgres/pg-error.ts";
import { pgMigrations } from "../../../src/store/postgres/pg-migrations.ts";
import { migrateUp, migrationStatus } from "../../../src/store/sql/migrate.ts";
import { usageIndex } from "../../support/index-build.ts";
import { openTestStore } from "../../support/open-test-store.ts";
import { PgBouncer } from "../../support/pgbouncer.ts";
import { query } from "../../support/run-statement.ts";
import { createEmptyDatabase, hasPostgres } from "../../support/test-database.ts";
import { atTestEnd } from "../../support/test-end.ts";

const known = [...pgMigrations, usageIndex];
/** Longer than a request of ours may wait for a lock. */
const longMs = 600;

async function migratedDatabase(): Promise<string> {
  const url = await createEmptyDatabase();
  await migrateUp(openEngine(url), 0, pgMigrations);
  return url;
}

function openEngine(url: string, signal?: AbortSignal) {
  const builds: string[] = [];
  const engine = openPgEngine({ url, connectionsMax: 1, signal, onIndexBuild: (_, by) => builds.push(by) });
  atTestEnd(() => engine.close());
  return Object.assign(engine, { builds });
}

/** Opens a transaction that has changed the table: a build waits for its end. */
async function openTransaction(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  atTestEnd(() => client.end());
  await client.connect();
  await client.query("BEGIN; DELETE FROM counters");
  return client;
}

async function indexState(url: string): Promise<{ valid: boolean | null; recorded: boolean }> {
  const { rows } = await query(
    url,
    `SELECT (SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass('${usageIndex.index.name}')) AS valid,
      EXISTS (SELECT FROM schema_migrations WHERE name = '${usageIndex.name}') AS recorded`,
  );
  return rows[0];
}

/** The server processes that build the index, once there are any. */
async function buildersOf(url: string): Promise<number[]> {
  const text =
    "SELECT pid FROM pg_stat_progress_create_index WHERE datname = current_database() AND phase LIKE 'waiting%'";
  for (;;) {
    const { rows } = await query(url, text);
    if (rows.length > 0) return rows.map(({ pid }) => pid as number);
    await delay(10);
  }
}

const built = { valid: true, recorded: true };

describe.runIf(hasPostgres).concurrent("an index", () => {
  it("is built, recorded, and not built again", async () => {
    const url = await migratedDatabase();
    const engine = openEngine(url);
    expect(await migrateUp(engine, 0, known)).toEqual([usageIndex.name]);
    expect(await indexState(url)).toEqual(built);
    expect(await migrateUp(engine, 0, known)).toEqual([]);
    expect(engine.builds).toEqual(["this process"]);
  });

  it("waits for older transactions without any time-out, and is recorded when it is complete, not before", async () => {
    const url = await migratedDatabase();
    const name = new URL(url).pathname.slice(1);
    for (const timeout of ["statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"])
      await query(url, `ALTER DATABASE ${name} SET ${timeout} = '100ms'`);
    const older = await openTransaction(`${url}?options=-c%20idle_in_transaction_session_timeout%3D0`);
    const engine = openEngine(url);
    const building = migrateUp(engine, 0, known);
    await buildersOf(url);
    await delay(longMs);
    expect(await indexState(url)).toEqual({ valid: false, recorded: false });
    expect((await migrationStatus(engine, known)).missing).toEqual([usageIndex]);
    await older.query("COMMIT");
    expect(await building).toEqual([usageIndex.name]);
    expect(await indexState(url)).toEqual(built);
  });

  it("whose build was interrupted is built again from the beginning", async () => {
    const url = await migratedDatabase();
    const older = await openTransaction(url);
    const engine = openEngine(url);
    const building = migrateUp(engine, 0, known);
    building.catch(() => {});
    const [builder] = await buildersOf(url);
    await query(url, `SELECT pg_terminate_backend(${builder})`);
    await expect(building).rejects.toThrow(Unavailable);
    expect(await indexState(url)).toEqual({ valid: false, recorded: false });
    await older.query("COMMIT");
    expect(await migrateUp(openEngine(url), 0, known)).toEqual([usageIndex.name]);
    expect(await indexState(url)).toEqual(built);
  });

  it("that the server still builds for a process that is gone is waited for", async () => {
    const url = await migratedDatabase();
    const older = await openTransaction(url);
    const gone = new AbortController();
    const first = migrateUp(openEngine(url, gone.signal), 0, known);
    first.catch(() => {});
    const builders = await buildersOf(url);
    gone.abort();
    await expect(first).rejects.toThrow(Unavailable);
    const engine = openEngine(url);
    const second = migrateUp(engine, 0, known);
    while (engine.builds.length === 0) await delay(10);
    expect(await buildersOf(url)).toEqual(builders);
    await older.query("COMMIT");
    expect(await second).toEqual([usageIndex.name]);
    expect(engine.builds).toEqual(["another process"]);
    expect(await indexState(url)).toEqual(built);
  });

  it("that six processes want at once is built by one of them, and the others wait", async () => {
    const url = await migratedDatabase();
    const older = await openTransaction(url);
    const engines = Array.from({ length: 6 }, () => openEngine(url));
    const building = engines.map((engine) => migrateUp(engine, 0, known));
    while (engines.some(({ builds }) => builds.length === 0)) await delay(10);
    const builders = await buildersOf(url);
    // Longer than the server takes to find out that two wait for each other.
    await delay(1200);
    expect(await buildersOf(url)).toEqual(builders);
    expect(builders).toHaveLength(1);
    await older.query("COMMIT");
    expect((await Promise.all(building)).flat()).toEqual([usageIndex.name]);
    expect(engines.filter(({ builds }) => builds[0] === "this process")).toHaveLength(1);
    expect(await indexState(url)).toEqual(built);
  });

  it("has one builder, also if the lock that says so is lost", async () => {
    const url = await migratedDatabase();
    const older = await openTransaction(url);
    const first = migrateUp(openEngine(url), 0, known);
    const builders = await buildersOf(url);
    const holder = "SELECT pg_terminate_backend(l.pid) FROM pg_locks l JOIN pg_database d ON d.oid = l.database";
    const ended = await query(url, `${holder} WHERE locktype = 'advisory' AND datname = current_database()`);
    expect(ended.rowCount).toBe(1);
    const engine = openEngine(url);
    const second = migrateUp(engine, 0, known);
    while (engine.builds.length === 0) await delay(10);
    expect(await buildersOf(url)).toEqual(builders);
    await older.query("COMMIT");
    expect((await Promise.all([first, second])).flat()).toEqual([usageIndex.name]);
    expect(await indexState(url)).toEqual(built);
  });

  it("does not keep a replica that waits for it from stopping", async () => {
    const url = await migratedDatabase();
    const older = await openTransaction(url);
    const closing = new AbortController();
    const opening = openTestStore({ url, migrations: known, signal: closing.signal });
    opening.catch(() => {});
    await buildersOf(url);
    closing.abort();
    await expect(opening).rejects.toThrow("the store is closed");
    await older.query("ROLLBACK");
  });
});

describe.runIf(hasPostgres)("an index, behind PgBouncer in transaction mode", () => {
  async function pooled(): Promise<{ direct: string; url: string }> {
    const direct = await migratedDatabase();
    const pooler = await PgBouncer.start(direct, { mode: "transaction", settings: { default_pool_size: 4 } });
    atTestEnd(() => pooler.remove());
    return { direct, url: pooler.through(direct) };
  }

  it("is built by one of several processes, while others use the same connections to the server", async () => {
    const { direct, url } = await pooled();
    const older = await openTransaction(direct);
    const engines = Array.from({ length: 3 }, () => openEngine(url));
    const building = engines.map((engine) => migrateUp(engine, 0, known));
    while (engines.some(({ builds }) => builds.length === 0)) await delay(10);
    expect(await buildersOf(direct)).toHaveLength(1);
    const waitedMs = 1200;
    const untilMs = performance.now() + waitedMs;
    while (performance.now() < untilMs) await query(url, "SELECT count(*) FROM keys");
    await older.query("COMMIT");
    expect((await Promise.all(building)).flat()).toEqual([usageIndex.name]);
    expect(await indexState(direct)).toEqual(built);
  });

  it("that the role's own time-out ends says what to do", async () => {
    const { direct, url } = await pooled();
    await query(direct, `ALTER DATABASE ${new URL(direct).pathname.slice(1)} SET statement_timeout = '300ms'`);
    const older = await openTransaction(direct);
    const refusal = await migrateUp(openEngine(url), 0, known).catch(orRefused);
    expect(refusal).toBeInstanceOf(DatabaseRefused);
    expect((refusal as Error).message).toContain("statement_timeout of the database's role");
    await older.query("COMMIT");
    expect(await migrateUp(openEngine(direct), 0, known)).toEqual([usageIndex.name]);
    expect(await indexState(direct)).toEqual(built);
  });
});
