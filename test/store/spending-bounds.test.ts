import { DatabaseSync } from "node:sqlite";
import pg from "pg";
import { describe, expect, it, onTestFinished } from "vitest";
import { readingsMax } from "../../src/domain/spending.ts";
import { openPgEngine } from "../../src/store/postgres/open-postgres-store.ts";
import { toPgStatement } from "../../src/store/postgres/pg-connection.ts";
import { pgMigrations } from "../../src/store/postgres/pg-migrations.ts";
import type { SpendingQuery } from "../../src/store/queries.ts";
import { migrateUp } from "../../src/store/sql/migrate.ts";
import { readSpending } from "../../src/store/sql/read-spending.ts";
import type { Sql } from "../../src/store/sql/sql.ts";
import type { SqlEngine } from "../../src/store/sql/sql-engine.ts";
import { toStatement } from "../../src/store/sqlite/writer-protocol.ts";
import { createTestDatabase, hasPostgres } from "../support/test-database.ts";
import { blocksOf, type PlanNode, rowsExamined } from "./examined-rows.ts";
import { openTestEngine } from "./sqlite/open-test-engine.ts";

const countersStored = 2000;
const hoursStored = 12;

const subjects = (from: string, count: number) => Array.from({ length: count }, (_, i) => `${from}${i + 1}`);
const hours = (count: number) => Array.from({ length: count }, (_, i) => i);

/** As many as can be asked for, or few; of subjects with readings, without, and that are gone. */
const questions: readonly (readonly [string, Omit<SpendingQuery, "kind">])[] = [
  ["the total of a key", { of: "key", ids: ["key_7"], hours: [3, 30] }],
  ["all hours of a month of keys", { of: "key", ids: subjects("key_", 13), hours: hours(745) }],
  ["the totals of many keys", { of: "key", ids: subjects("key_", 100), hours: [0, 40, 99] }],
  ["unknown keys", { of: "key", ids: subjects("nobody_", 100), hours: hours(99) }],
  ["owners", { of: "owner", ids: subjects("owner ", 100), hours: hours(99) }],
  ["keys of an API", { of: "key", ids: subjects("key_", 100), hours: hours(99), apiIds: ["mine"] }],
  ["owners of an API", { of: "owner", ids: subjects("owner ", 100), hours: hours(99), apiIds: ["mine"] }],
];

const counters = (numbers: string, prefix: string) => `
  INSERT INTO counters (subject, remaining, credited, metered_hour)
  SELECT '${prefix}' || i, 5, 500, ${hoursStored} FROM ${numbers} WHERE i % 3 > 0`;
const readings = (numbers: string, prefix: string, hour: string) => `
  INSERT INTO readings (subject, hour, spent, api_id, api_ids)
  SELECT '${prefix}' || i, h, h, 'mine', '["mine"]' FROM ${numbers}, ${hour}`;

async function statementsOf(engine: SqlEngine, query: Omit<SpendingQuery, "kind">): Promise<readonly Sql[]> {
  const statements: Sql[] = [];
  const scan = (statement: Sql) => {
    statements.push(statement);
    return engine.scan(statement);
  };
  const { counters } = await readSpending({ ...engine, scan }, { kind: "spending", ...query });
  expect(counters).toHaveLength(query.ids.length);
  return statements;
}

describe("what was spent is found by steps in indexes, however many counters and readings there are", () => {
  it("on SQLite", async () => {
    const { engine, file } = await openTestEngine();
    const db = new DatabaseSync(file, { timeout: 5000 });
    onTestFinished(() => db.close());
    const upTo = (n: number, name: string) =>
      `(WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${n}) SELECT i AS ${name} FROM n)`;
    for (const prefix of ["key_", "c/owner "])
      db.exec(
        `${counters(upTo(countersStored, "i"), prefix)};
        ${readings(upTo(countersStored, "i"), prefix, upTo(hoursStored, "h"))}`,
      );
    for (const [what, query] of questions)
      for (const { sql, parameters } of (await statementsOf(engine, query)).map(toStatement)) {
        const plan = db.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(...(parameters as string[]));
        const scans = plan
          .map(({ detail }) => String(detail))
          .filter((step) => /SCAN (counters|readings|keys|owners)/.test(step));
        expect(scans, what).toEqual([]);
      }
  });

  it.runIf(hasPostgres)("on Postgres, with the statistics of another time or none", async () => {
    const url = await createTestDatabase();
    const engine = openPgEngine({ url, connectionsMax: 2 });
    onTestFinished(() => engine.close());
    await migrateUp(engine, 1, pgMigrations);
    const client = new pg.Client(url);
    await client.connect();
    onTestFinished(() => client.end());
    await client.query("SET plan_cache_mode = force_generic_plan");
    const add = async (from: number, to: number) => {
      for (const prefix of ["key_", "c/owner "]) {
        const numbers = `generate_series(${from}, ${to}) AS i`;
        await client.query(counters(numbers, prefix));
        await client.query(readings(numbers, prefix, `generate_series(1, ${hoursStored}) AS h`));
      }
    };
    /** Two readings for each number: of a counter that is gone, the last one too. Readings are steps in the index in any case. A table of counters that is believed to be small may be read as a whole. */
    const check = async (when: string, isKnown: boolean) => {
      for (const [what, query] of questions)
        for (const { text, values } of (await statementsOf(engine, query)).map(toPgStatement)) {
          const { rows } = await client.query(`EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${text}`, [...values]);
          const plan = rows[0]["QUERY PLAN"][0].Plan as PlanNode;
          const asked = query.ids.length * (query.hours.length + 4);
          expect(rowsExamined(plan, "readings"), `${what}, ${when}`).toBeLessThanOrEqual(2 * asked);
          expect(asked).toBeLessThanOrEqual(readingsMax + 4 * query.ids.length);
          if (!isKnown) continue;
          expect(rowsExamined(plan, "counters"), what).toBeLessThanOrEqual(query.ids.length);
          // A few steps for each: down the index and to the row.
          expect(blocksOf(plan), `blocks of ${what}`).toBeLessThanOrEqual(6 * (asked + 10));
        }
    };
    await add(1, 3);
    await client.query("VACUUM ANALYZE");
    await add(4, countersStored);
    await check("statistics of three counters", false);
    await client.query("VACUUM ANALYZE");
    await check("statistics of all counters", true);
  });
});
