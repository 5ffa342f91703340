import pg from "pg";
import { describe, expect, it, onTestFinished } from "vitest";
import { openPgEngine } from "../../../src/store/postgres/open-postgres-store.ts";
import { toPgStatement } from "../../../src/store/postgres/pg-connection.ts";
import { pgMigrations } from "../../../src/store/postgres/pg-migrations.ts";
import { migrateUp } from "../../../src/store/sql/migrate.ts";
import type { Sql } from "../../../src/store/sql/sql.ts";
import { createSqlManagement } from "../../../src/store/sql/sql-management.ts";
import { sampleOwner } from "../../contract/owner-cases.ts";
import { sampleKey } from "../../contract/sample-keys.ts";
import { createKey, createOwner, deleteApiKeys, endOwnerKeys, stopApi } from "../../support/manage.ts";
import { openTestStore } from "../../support/open-test-store.ts";
import { query } from "../../support/run-statement.ts";
import { TestClock } from "../../support/test-clock.ts";
import { createTestDatabase, hasPostgres } from "../../support/test-database.ts";
import { type PlanNode, rowsExamined } from "../examined-rows.ts";

const keysStored = 36_000;

describe.runIf(hasPostgres)("keys of an API or owner that is deleted", () => {
  it.each(["API", "owner", "owner in one API"])(
    "go in pieces of the size that was asked for, whatever plan Postgres chooses (%s)",
    async (whose) => {
      const url = await createTestDatabase();
      const name = new URL(url).pathname.slice(1);
      // What is left is a nested loop that evaluates the inner side again for each row of the outer one. It looks so expensive
      // that Postgres would compile it, which takes seconds.
      const off = ["hashjoin", "mergejoin", "hashagg", "sort", "material", "memoize"];
      for (const setting of ["jit", ...off.map((method) => `enable_${method}`)]) {
        await query(url, `ALTER DATABASE ${name} SET ${setting} = off`);
      }
      const { management } = await openTestStore({ url });
      const clock = new TestClock();
      for (let i = 0; i < 8; i++) await createKey(management, sampleKey(clock, { apiId: "api", ownerId: "owner" }));
      await stopApi(management, "api");
      await createOwner(management, sampleOwner("owner"));
      const apiId = whose === "owner" ? undefined : "api";
      const deleted = [];
      for (let piece = 0; piece < 4; piece++) {
        const ended =
          whose === "API"
            ? deleteApiKeys(management, "api", 3)
            : endOwnerKeys(management, "owner", { how: "delete", apiId, limit: 3 });
        deleted.push(await ended);
      }
      expect(deleted).toMatchObject([3, 3, 2, 0].map((length) => ({ changed: { length } })));
    },
  );

  it("are left if they are given to another owner while a piece waits for them", async () => {
    const url = await createTestDatabase();
    const { management } = await openTestStore({ url });
    const clock = new TestClock();
    const [moved, ended] = ["key_a", "key_b"].map((id) => sampleKey(clock, { id, apiId: "api", ownerId: "owner" }));
    for (const key of [moved, ended]) await createKey(management, key as NonNullable<typeof key>);
    await createOwner(management, sampleOwner("owner"));
    const connect = async () => {
      const client = new pg.Client(url);
      await client.connect();
      onTestFinished(() => client.end());
      return client;
    };
    const [other, watcher] = [await connect(), await connect()];
    // Longer than other changes wait.
    const waiting = `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
      AND clock_timestamp() - query_start > interval '600 ms'`;
    for (const how of ["disable", "delete"] as const) {
      await other.query("UPDATE keys SET owner_id = 'owner'");
      await other.query("BEGIN");
      await other.query("UPDATE keys SET owner_id = 'another' WHERE id = 'key_a'");
      const piece = endOwnerKeys(management, "owner", { how });
      while ((await watcher.query(waiting)).rows.length === 0);
      await other.query("COMMIT");
      expect(await piece).toMatchObject({ outcome: "done", changed: [{ keyId: "key_b" }] });
      expect(await management.read({ kind: "key", id: "key_a" })).toMatchObject({ enabled: true, ownerId: "another" });
    }
  });

  it.each(["large", "owner", "owner in one API"])("are found without examining those of others (%s)", async (whose) => {
    const url = await createTestDatabase();
    const engine = openPgEngine({ url, connectionsMax: 2 });
    onTestFinished(() => engine.close());
    await migrateUp(engine, 1, pgMigrations);
    const client = new pg.Client(url);
    await client.connect();
    onTestFinished(() => client.end());
    await client.query("SET plan_cache_mode = force_generic_plan");
    await client.query(`INSERT INTO apis (id, defaults, is_deleting, created_at_ms, updated_at_ms, version, event_id)
      SELECT id, '{}', 1, 1, 1, 1, '' FROM (SELECT 'large' AS id UNION SELECT 'small') AS ids`);
    await client.query(`INSERT INTO owners (id, list_id, meta, enabled, has_counter, created_at_ms, updated_at_ms, version, event_id)
      VALUES ('owner', '', '{}', 0, 0, 1, 1, 1, '')`);
    const statements: Sql[] = [];
    const noting = {
      ...engine,
      async atomically(all: readonly Sql[]) {
        statements.push(...all);
        return all.map(() => ({ rows: [], changes: 0 }));
      },
    };
    const management = createSqlManagement(noting);
    const examinedBy = async (after: string | undefined) => {
      statements.splice(0);
      if (whose === "large") await deleteApiKeys(management, "large", 500, after);
      else
        await endOwnerKeys(management, "owner", {
          how: "delete",
          apiId: whose === "owner" ? undefined : "large",
          after,
        });
      await client.query("BEGIN");
      let examined = 0;
      for (const { text, values } of statements.map(toPgStatement)) {
        const { rows } = await client.query(`EXPLAIN (ANALYZE, FORMAT JSON) ${text}`, [...values]);
        const plan = rows[0]["QUERY PLAN"][0].Plan as PlanNode;
        examined += rowsExamined(plan, "keys");
      }
      const { rows } = await client.query("SELECT count(*)::int AS left FROM keys");
      await client.query("ROLLBACK");
      expect(rows).toEqual([{ left: keysStored - 500 }]);
      return examined;
    };
    await client.query(`INSERT INTO keys (digest, id, api_id, start, owner_id, meta, enabled, has_counter, created_at_ms, updated_at_ms, version, event_id, secret_created_at_ms)
        SELECT md5(i::text), 'key_' || lpad(i::text, 6, '0'), CASE WHEN i % 3 = 0 THEN 'small' ELSE 'large' END, '',
          CASE WHEN i % 2 = 0 THEN 'owner' END, '{}', 1, 0, i, i, 1, '', i FROM generate_series(1, ${keysStored}) AS i`);
    await client.query("VACUUM ANALYZE");
    // Ten looks at them, or at twice as many.
    for (const after of [undefined, "key_018000"]) expect(await examinedBy(after)).toBeLessThan(15_000);
  });
});
