import pg from "pg";
import { describe, expect, it, onTestFinished } from "vitest";
import { systemClock } from "../../../src/ambient/clock.ts";
import { createMetrics } from "../../../src/ambient/metrics.ts";
import { createSystemRandom } from "../../../src/ambient/random.ts";
import type { NewKey } from "../../../src/domain/key.ts";
import { openPgEngine, openPostgresStore, type PgEngine } from "../../../src/store/postgres/open-postgres-store.ts";
import { Sql } from "../../../src/store/sql/sql.ts";
import { createSqlManagement } from "../../../src/store/sql/sql-management.ts";
import { deleteApi } from "../../../src/usecases/delete-api.ts";
import { permitAsk } from "../../contract/permit-asks.ts";
import { sampleKey } from "../../contract/sample-keys.ts";
import { exchange, settle } from "../../contract/settle.ts";
import { isDeep, sized } from "../../support/deep.ts";
import { createApi, createKey, updateApi, updateRemaining } from "../../support/manage.ts";
import { ones } from "../../support/ones.ts";
import { query } from "../../support/run-statement.ts";
import { settles } from "../../support/settles.ts";
import { TestClock } from "../../support/test-clock.ts";
import { createTestDatabase, hasPostgres } from "../../support/test-database.ts";
import { lockRow, surely, waitingLonger } from "./lane-fixture.ts";

const deps = { clock: systemClock, random: createSystemRandom() };

/** However busy the machine is. */
const settledMs = 60_000;
const clock = new TestClock();
const strict = { mode: "strict", limit: 1000, durationMs: 60_000 } as const;
const rateLimits = [{ name: "a", rule: strict }];
const newKey = (apiId: string): NewKey => sampleKey(clock, { apiId, remaining: 1000, rateLimit: strict, rateLimits });

/** A database in which a circle of waiting transactions is found, and counted, after a few milliseconds. */
async function databaseThatTellsOfCircles() {
  const url = await createTestDatabase();
  const client = new pg.Client(url);
  await client.connect();
  onTestFinished(() => client.end());
  await client.query(
    "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET deadlock_timeout = 10', current_database()); END $$",
  );
  const number = async (text: string) => (await client.query(text)).rows[0].n as number;
  const others =
    "SELECT count(*)::int AS n FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()";
  const counted = "SELECT deadlocks::int AS n FROM pg_stat_database WHERE datname = current_database()";
  /** A session's count is there when it has ended: all have, but those that are named. */
  const circles = async (sessionsLeft = 0) => {
    await settles(() => number(others), sessionsLeft, settledMs);
    return number(counted);
  };
  return { url, client, circles };
}

async function openStore(url: string, lanes: number) {
  const store = await openPostgresStore({
    url,
    connectionsMax: 8,
    lanes,
    usageTimeoutMs: 20_000,
    clock: systemClock,
    metrics: createMetrics(),
    random: createSystemRandom(),
  });
  onTestFinished(() => store.close());
  return store;
}

/** The engine of a store that locks counters and windows in the opposite order when it deletes keys. */
function lockingBackwards(engine: PgEngine): PgEngine {
  const turned = ({ texts, values }: Sql) =>
    new Sql(
      texts.map((text) => text.replaceAll("ORDER BY subject", "ORDER BY subject DESC")),
      values,
    );
  return { ...engine, atomically: (queries) => engine.atomically(queries.map(turned)) };
}

/**
 * Deletes the keys of an API while a session holds the counter of one in their middle, has all of them used, and lets go; then
 * the same with windows. Answers how many circles of waiting transactions there were: a deletion that is one of a circle is
 * refused by the database.
 */
async function circlesWith(change: (engine: PgEngine) => PgEngine): Promise<number> {
  const { url, circles } = await databaseThatTellsOfCircles();
  const store = await openStore(url, 1);
  const engine = openPgEngine({ url, connectionsMax: 2 });
  const management = createSqlManagement(change(waitingLonger(engine)));
  const uses = {
    counters: (ids: readonly string[]) =>
      settle(
        store,
        ids.map((keyId) => ({ subject: keyId, cost: 1, count: 1 })),
      ),
    permit_windows: (ids: readonly string[]) =>
      exchange(
        store,
        ids.map((keyId) => ({ subject: keyId, ...permitAsk({ waiting: ones(1) }) })),
      ),
  };
  const holders = [];
  for (const table of ["counters", "permit_windows"] as const) {
    const keys = Array.from({ length: 9 }, () => newKey(table));
    await Promise.all(keys.map((key) => createKey(store.management, key)));
    const ids = keys.map(({ id }) => id).sort();
    const holder = await lockRow(url, table, ids[4] as string);
    holders.push(holder);
    const deleting = Promise.allSettled([deleteApi(management, { apiId: table, force: true }, undefined, deps)]);
    await settles(() => waitingForLocks(url), 1, settledMs);
    const using = Promise.allSettled([uses[table](ids)]);
    await settles(() => waitingForLocks(url), 2, settledMs);
    await holder.release();
    await Promise.all([deleting, using]);
  }
  await store.close();
  await engine.close();
  return circles(holders.length);
}

async function waitingForLocks(url: string): Promise<number> {
  const text =
    "SELECT count(*)::int AS n FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";
  return (await query(url, text)).rows[0].n;
}

/** Runs the work again and again until the other is over. */
async function during(over: Promise<unknown>, work: () => Promise<unknown>): Promise<number> {
  let isOver = false;
  let count = 0;
  const ended = over.finally(() => {
    isOver = true;
  });
  while (!isOver) {
    await surely(work);
    count++;
  }
  await ended;
  return count;
}

describe.runIf(hasPostgres)("a forced deletion of an API", () => {
  it("among creations, changes and uses waits in no circle, loses no event, and leaves no key behind", async () => {
    const { url, client, circles } = await databaseThatTellsOfCircles();
    const [store, second] = [await openStore(url, 2), await openStore(url, 2)];
    const keys = Array.from({ length: sized(600, 1200) }, () => newKey("api"));
    const others = Array.from({ length: 20 }, () => newKey("other"));
    for (let at = 0; at < keys.length; at += 50) {
      await Promise.all(keys.slice(at, at + 50).map((key) => createKey(store.management, key)));
    }
    await Promise.all(others.map((key) => createKey(store.management, key)));

    const some = (from: readonly NewKey[]) => from[Math.floor(Math.random() * from.length)] as NewKey;
    const deleting = Promise.all([
      surely(() => deleteApi(store.management, { apiId: "api", force: true }, undefined, deps)),
      surely(() => deleteApi(second.management, { apiId: "api", force: true }, undefined, deps)),
    ]);
    const uses: string[] = [];
    const refusals = new Set<string>();
    const counts = await Promise.all([
      during(deleting, async () => {
        const outcome = await createKey(second.management, newKey("api"));
        refusals.add(outcome.outcome === "conflict" ? outcome.reason : outcome.outcome);
      }),
      during(deleting, () => updateRemaining(second.management, some(keys).id, "set", 500)),
      during(deleting, () => updateApi(second.management, "api", { name: "name" })),
      during(deleting, async () => {
        const charges = [...Array.from({ length: 30 }, () => some(keys)), ...others].map(({ id }) => id);
        const results = await settle(
          store,
          [...new Set(charges)].map((keyId) => ({ subject: keyId, cost: 1, count: 1 })),
        );
        uses.push(...results.slice(-others.length).map(({ outcome }) => outcome));
      }),
    ]);
    for (const count of counts) expect(count).toBeGreaterThan(0);
    expect(new Set(uses)).toEqual(new Set(["settled"]));
    expect(refusals).toContain("apiIsDeleting");
    for (const said of refusals) expect(["apiIsDeleting", "done"]).toContain(said);

    const ask = async (text: string) => (await client.query(text)).rows;
    const events = await ask(
      "SELECT count(*)::int AS all, count(DISTINCT target_id)::int AS keys FROM events WHERE method = 'apis.deleteApi' AND target_id <> 'api' AND api_id = 'api'",
    );
    const [{ all, keys: deleted }] = events as [{ all: number; keys: number }];
    expect(all).toBe(deleted);
    expect(deleted).toBeGreaterThanOrEqual(keys.length);
    const old = await client.query("SELECT count(*)::int AS n FROM keys WHERE id = ANY($1)", [
      keys.map(({ id }) => id),
    ]);
    expect(old.rows).toEqual([{ n: 0 }]);
    const orphans = await ask(
      "SELECT (SELECT count(*) FROM counters WHERE subject NOT IN (SELECT id FROM keys))::int AS usage, (SELECT count(*) FROM permit_windows WHERE split_part(subject, '/', 1) NOT IN (SELECT id FROM keys))::int AS permits",
    );
    expect(orphans).toEqual([{ usage: 0, permits: 0 }]);
    const told = await ask("SELECT count(DISTINCT target_id)::int AS n FROM changes WHERE kind = 'key'");
    expect((told[0] as { n: number }).n).toBeGreaterThanOrEqual(keys.length);
    await store.close();
    await second.close();
    expect(await circles()).toBe(0);
  });

  if (!isDeep) {
    it("refuses new keys with a conflict, also while the deletion of a piece waits for a lock", async () => {
      const url = await createTestDatabase();
      const store = await openStore(url, 1);
      const engine = openPgEngine({ url, connectionsMax: 2 });
      onTestFinished(() => engine.close());
      const key = newKey("api");
      await createKey(store.management, key);
      const holder = await lockRow(url, "counters", key.id);
      const management = createSqlManagement(waitingLonger(engine));
      const deleting = deleteApi(management, { apiId: "api", force: true }, undefined, deps);
      await settles(() => waitingForLocks(url), 1, settledMs);
      const conflict = (reason: string) => ({ outcome: "conflict", reason });
      expect(await createKey(store.management, newKey("api"))).toEqual(conflict("apiIsDeleting"));
      expect(await createApi(store.management, "api")).toEqual(conflict("apiExists"));
      await holder.release();
      expect(await deleting).toBe(true);
    });

    it("waits in no circle with uses, because it locks counters and windows in the same order", async () => {
      expect(await circlesWith((engine) => engine)).toBe(0);
    });

    it("control: in the opposite order it does", async () => {
      expect(await circlesWith(lockingBackwards)).toBe(2);
    });
  }
});
