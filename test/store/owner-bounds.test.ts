import { DatabaseSync } from "node:sqlite";
import pg from "pg";
import { describe, expect, it, onTestFinished } from "vitest";
import { openPgEngine } from "../../src/store/postgres/open-postgres-store.ts";
import { toPgStatement } from "../../src/store/postgres/pg-connection.ts";
import { pgMigrations } from "../../src/store/postgres/pg-migrations.ts";
import type { PageQuery } from "../../src/store/queries.ts";
import { listOwners } from "../../src/store/sql/list-resources.ts";
import { migrateUp } from "../../src/store/sql/migrate.ts";
import type { Sql } from "../../src/store/sql/sql.ts";
import type { SqlEngine } from "../../src/store/sql/sql-engine.ts";
import { createSqlManagement } from "../../src/store/sql/sql-management.ts";
import { toStatement } from "../../src/store/sqlite/writer-protocol.ts";
import { sized } from "../support/deep.ts";
import { listOwnerPages } from "../support/manage.ts";
import { createTestDatabase, hasPostgres } from "../support/test-database.ts";
import { blocksOf, type PlanNode, rowsExamined } from "./examined-rows.ts";
import { openTestEngine } from "./sqlite/open-test-engine.ts";

const examinedMax = 10_000;
const ownersStored = 12_000;

/** With another one as many as a root key can have, at full size: SQLite takes seconds to plan such a list. */
const manyApis = Array.from({ length: sized(24, 99) }, (_, i) => `none ${i}`);

type Asked = Omit<PageQuery<"owners">, "kind" | "limit">;

/** Most find nothing, or little, among many owners. */
const lists: readonly (readonly [string, Asked])[] = [
  ["the first page", {}],
  ["a page in the middle", { after: "evt_006000" }],
  ["the last page", { after: "evt_000050" }],
  ["an API without owners", { apiIds: ["none"] }],
  ["an API whose few owners are the oldest", { apiIds: ["small"] }],
  ["an API whose owners mostly concern another too", { apiIds: ["large"] }],
  ["both", { apiIds: ["large", "other"] }],
  ["many APIs", { apiIds: ["large", ...manyApis] }],
];

/**
 * The oldest ten are of a small API alone. Of the others, one in a thousand is of the large API alone, one in three concerns
 * all APIs, and the rest both the large and another.
 */
const apiIdsOf = `CASE WHEN i <= 10 THEN '["small"]' WHEN i % 1000 = 0 THEN '["large"]' WHEN i % 3 = 0 THEN NULL
  ELSE '["other","large"]' END`;
const firstApiOf = "CASE WHEN i <= 10 THEN 'small' WHEN i % 1000 = 0 OR i % 3 <> 0 THEN 'large' END";

const fill = (numbers: string, padded: string) => `
  INSERT INTO owners (id, list_id, meta, enabled, api_ids, first_api_id, has_counter, created_at_ms, updated_at_ms, version, event_id)
  SELECT 'owner ' || i, 'evt_' || ${padded}, '{}', 1, ${apiIdsOf}, ${firstApiOf}, 0, i, i, 1, '' FROM ${numbers}`;

const newestFirst = Array.from({ length: ownersStored }, (_, i) => ownersStored - i);

/** Lists whose pages end at a bound, or are full, and the numbers of the owners that they show. */
const whole: readonly (readonly [Asked["apiIds"], readonly number[]])[] = [
  [undefined, newestFirst],
  [["large"], newestFirst.filter((i) => i % 1000 === 0)],
  [["small", "large", ...manyApis.slice(0, 8)], newestFirst.filter((i) => i <= 10 || i % 1000 === 0)],
  [["large", "other"], newestFirst.filter((i) => i > 10 && (i % 1000 === 0 || i % 3 !== 0))],
  [["other"], []],
];

async function statementsOf(engine: SqlEngine, query: Asked): Promise<readonly Sql[]> {
  const statements: Sql[] = [];
  const scan = (statement: Sql) => {
    statements.push(statement);
    return engine.scan(statement);
  };
  await listOwners({ ...engine, scan }, { kind: "owners", limit: 100, ...query });
  return statements;
}

async function expectWholeLists(engine: SqlEngine): Promise<void> {
  const management = createSqlManagement(engine);
  let short = 0;
  for (const [apiIds, numbers] of whole) {
    const pages = await listOwnerPages(management, apiIds);
    short += pages.filter(({ items, cursor }) => items.length < 100 && cursor !== undefined).length;
    const ids = pages.flatMap(({ items }) => items.map(({ id }) => id));
    expect(ids, JSON.stringify(apiIds)).toEqual(numbers.map((i) => `owner ${i}`));
  }
  expect(short, "pages that ended at their bound").toBeGreaterThan(5);
  // Of other APIs nothing is there, not even a cursor.
  for (const apiIds of [manyApis, ["other"], []]) {
    expect(await management.read({ kind: "owners", apiIds, limit: 100 })).toEqual({ items: [] });
  }
}

describe("a page examines a bounded number of owners, whatever it finds, and all pages together show all owners", () => {
  it("on SQLite", async () => {
    const { engine, file } = await openTestEngine();
    const db = new DatabaseSync(file, { timeout: 5000 });
    onTestFinished(() => db.close());
    let examined = 0;
    db.function("examine", () => {
      examined++;
      return 1;
    });
    const numbers = `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${ownersStored}) SELECT i FROM n`;
    db.exec(fill(`(${numbers})`, "printf('%06d', i)"));
    for (const [what, query] of lists) {
      examined = 0;
      for (const { sql, parameters } of (await statementsOf(engine, query)).map(toStatement)) {
        const counting = sql.replaceAll(/FROM "owners" WHERE/g, 'FROM "owners" WHERE examine() = 1 AND');
        expect(counting).not.toBe(sql);
        db.prepare(counting).all(...(parameters as string[]));
        const plan = db.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(...(parameters as string[]));
        const scans = plan.map(({ detail }) => String(detail)).filter((step) => /SCAN owners/.test(step));
        expect(scans, what).toEqual([]);
      }
      expect(examined, what).toBeLessThanOrEqual(examinedMax);
    }
    await expectWholeLists(engine);
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
    const add = (from: number, to: number) =>
      client.query(fill(`generate_series(${from}, ${to}) AS i`, "lpad(i::text, 6, '0')"));
    const check = async (when: string) => {
      for (const [what, query] of lists) {
        let examined = 0;
        let blocks = 0;
        for (const { text, values } of (await statementsOf(engine, query)).map(toPgStatement)) {
          const { rows } = await client.query(`EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${text}`, [...values]);
          const plan = rows[0]["QUERY PLAN"][0].Plan as PlanNode;
          examined += rowsExamined(plan, "owners");
          blocks += blocksOf(plan);
        }
        expect(examined, `${what}, ${when}`).toBeLessThanOrEqual(examinedMax);
        expect(blocks, `blocks of ${what}, ${when}`).toBeLessThanOrEqual(examinedMax);
      }
    };
    await add(1, 10);
    await client.query("VACUUM ANALYZE");
    await add(11, ownersStored);
    await check("statistics of ten owners");
    await client.query("VACUUM ANALYZE");
    await check("statistics of all owners");
    await expectWholeLists(engine);
  });
});
