import { setTimeout as delay } from "node:timers/promises";
import pg from "pg";
import { describe, expect, it } from "vitest";
import { openPgEngine } from "../../src/store/postgres/open-postgres-store.ts";
import { pgMigrations } from "../../src/store/postgres/pg-migrations.ts";
import { migrateUp } from "../../src/store/sql/migrate.ts";
import type { IndexMigration } from "../../src/store/sql/migrations.ts";
import { addKeysLike, loadDuring, plainIndexText, usageIndex } from "../support/index-build.ts";
import { startLatchkey } from "../support/latchkey-process.ts";
import { rawClient } from "../support/raw-client.ts";
import { query } from "../support/run-statement.ts";
import { createEmptyDatabase } from "../support/test-database.ts";
import { atTestEnd } from "../support/test-end.ts";
import { testRootKey } from "../support/test-root-key.ts";

/* `npm run soak -- index`: indexes are built on a million rows while verifications run, and not one of them fails. */

const rows = 1_000_000;
const callers = 16;
/** Beside the builds, so that they meet a service that has been running. */
const quietMs = 3000;

/** One on each large table: the second is written with every verification of a counted key. */
const indexes: readonly IndexMigration[] = [
  { name: "9998-index", index: { name: "keys_by_time", table: "keys", columns: ["created_at_ms", "id"] } },
  usageIndex,
];

describe(`an index on ${rows} rows`, () => {
  it("is built while verifications run, and fails none of them", async () => {
    const url = await createEmptyDatabase();
    const { baseUrl } = await startLatchkey({ DATABASE_URL: url, LATCHKEY_ROOT_KEY: testRootKey });
    const { keys } = rawClient({ baseUrl, rootKey: testRootKey });
    const refill = { interval: "daily", amount: 10 } as const;
    const { keyId } = await keys.createKey({ apiId: "bulk", remaining: 10, refill });
    await addKeysLike(url, keyId, rows);
    // What adding so many rows leaves to do is not what is measured.
    for (const text of ["VACUUM ANALYZE", "CHECKPOINT"]) await query(url, text);
    const engine = openPgEngine({ url, connectionsMax: 1 });
    atTestEnd(() => engine.close());
    const load = { baseUrl, rootKey: testRootKey, callers };
    for (const migration of indexes) {
      let buildMs = 0;
      const figures = await loadDuring(load, async () => {
        await delay(quietMs);
        const startMs = performance.now();
        const applied = await migrateUp(engine, 0, [
          ...pgMigrations,
          ...indexes.slice(0, indexes.indexOf(migration) + 1),
        ]);
        buildMs = Math.round(performance.now() - startMs);
        expect(applied).toEqual([migration.name]);
        await delay(quietMs);
      });
      const { rows: state } = await query(
        url,
        `SELECT indisvalid, pg_relation_size(indexrelid)::int AS bytes FROM pg_index
          WHERE indexrelid = '${migration.index.name}'::regclass`,
      );
      console.log(JSON.stringify({ ...migration.index, buildMs, ...state[0], ...figures }));
      expect(state).toMatchObject([{ indisvalid: true }]);
      expect(figures.failed).toEqual({});
    }
    // The same in one transaction: what the load would have noticed.
    const client = new pg.Client({ connectionString: url });
    atTestEnd(() => client.end());
    await client.connect();
    let plainMs = 0;
    const plain = await loadDuring(load, async () => {
      await delay(quietMs);
      const startMs = performance.now();
      await client.query(plainIndexText);
      plainMs = Math.round(performance.now() - startMs);
      await delay(quietMs);
    });
    console.log(JSON.stringify({ control: plainIndexText, plainMs, ...plain }));
    expect(Object.keys(plain.failed).some((what) => what.startsWith("verifyKey 503"))).toBe(true);
  });
});
