import pg from "pg";
import { describe, expect, it, onTestFinished } from "vitest";
import { systemClock } from "../../../src/ambient/clock.ts";
import { createMetrics } from "../../../src/ambient/metrics.ts";
import { createSystemRandom } from "../../../src/ambient/random.ts";
import type { NewKey } from "../../../src/domain/key.ts";
import { openPostgresStore } from "../../../src/store/postgres/open-postgres-store.ts";
import { deleteApi } from "../../../src/usecases/delete-api.ts";
import { sampleKey } from "../../contract/sample-keys.ts";
import { settle } from "../../contract/settle.ts";
import { createKey, updateApi, updateRemaining } from "../../support/manage.ts";
import { TestClock } from "../../support/test-clock.ts";
import { createTestDatabase, hasPostgres } from "../../support/test-database.ts";

const deps = { clock: systemClock, random: createSystemRandom() };

async function openStore(url: string) {
  const store = await openPostgresStore({
    url,
    connectionsMax: 8,
    lanes: 2,
    usageTimeoutMs: 20_000,
    clock: systemClock,
    metrics: createMetrics(),
    random: createSystemRandom(),
  });
  onTestFinished(() => store.close());
  return store;
}

/** Runs the work again and again until the other is over. */
async function during(over: Promise<unknown>, work: () => Promise<unknown>): Promise<number> {
  let isOver = false;
  let count = 0;
  const ended = over.finally(() => {
    isOver = true;
  });
  while (!isOver) {
    await work();
    count++;
  }
  await ended;
  return count;
}

describe.runIf(hasPostgres)("a forced deletion of an API", () => {
  it("among creations, changes and uses waits in no circle, loses no event, and leaves no key behind", async () => {
    const url = await createTestDatabase();
    const client = new pg.Client(url);
    await client.connect();
    onTestFinished(() => client.end());
    // A circle of waiting transactions is found, and counted, after this time.
    await client.query(
      "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET deadlock_timeout = 10', current_database()); END $$",
    );
    const [store, second] = [await openStore(url), await openStore(url)];
    const clock = new TestClock();
    const strict = { mode: "strict", limit: 1000, durationMs: 60_000 } as const;
    const newKey = (apiId: string): NewKey => sampleKey(clock, { apiId, remaining: 1000, rateLimit: strict });
    const keys = Array.from({ length: 1200 }, () => newKey("api"));
    const others = Array.from({ length: 20 }, () => newKey("other"));
    for (let at = 0; at < keys.length; at += 50) {
      await Promise.all(keys.slice(at, at + 50).map((key) => createKey(store.management, key)));
    }
    await Promise.all(others.map((key) => createKey(store.management, key)));

    const some = (from: readonly NewKey[]) => from[Math.floor(Math.random() * from.length)] as NewKey;
    const deleting = Promise.all([
      deleteApi(store.management, { apiId: "api", force: true }, undefined, deps),
      deleteApi(second.management, { apiId: "api", force: true }, undefined, deps),
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
          [...new Set(charges)].map((keyId) => ({ keyId, wanted: 1 })),
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
      "SELECT (SELECT count(*) FROM key_usage WHERE key_id NOT IN (SELECT id FROM keys))::int AS usage, (SELECT count(*) FROM key_permits WHERE key_id NOT IN (SELECT id FROM keys))::int AS permits",
    );
    expect(orphans).toEqual([{ usage: 0, permits: 0 }]);
    const told = await ask("SELECT count(DISTINCT key_id)::int AS n FROM changes WHERE kind = 'key'");
    expect((told[0] as { n: number }).n).toBeGreaterThanOrEqual(keys.length);
    await store.close();
    await second.close();
    await expect
      .poll(
        async () =>
          (await ask("SELECT deadlocks::int AS n FROM pg_stat_database WHERE datname = current_database()"))[0],
      )
      .toEqual({ n: 0 });
  });
});
