import { DatabaseSync } from "node:sqlite";
import pg from "pg";
import { describe, expect, it, onTestFinished } from "vitest";
import { openPgEngine } from "../../src/store/postgres/open-postgres-store.ts";
import { toPgStatement } from "../../src/store/postgres/pg-connection.ts";
import { pgMigrations } from "../../src/store/postgres/pg-migrations.ts";
import type { KeysQuery } from "../../src/store/queries.ts";
import { listKeys } from "../../src/store/sql/list-keys.ts";
import { migrateUp } from "../../src/store/sql/migrate.ts";
import type { Sql } from "../../src/store/sql/sql.ts";
import type { SqlEngine } from "../../src/store/sql/sql-engine.ts";
import { createSqlManagement } from "../../src/store/sql/sql-management.ts";
import { toStatement } from "../../src/store/sqlite/writer-protocol.ts";
import { sized } from "../support/deep.ts";
import { listPages } from "../support/manage.ts";
import { createTestDatabase, hasPostgres } from "../support/test-database.ts";
import { blocksOf, type PlanNode, rowsExamined } from "./examined-rows.ts";
import { openTestEngine } from "./sqlite/open-test-engine.ts";

const examinedMax = 10_000;
const keysStored = 36_000;
/** With another one as many as a root key can have, at full size. */
const otherApis = sized(24, 99);

const manyApis = (others: readonly string[]) => [
  ...others,
  ...Array.from({ length: otherApis }, (_, i) => `none ${i}`),
];

/** Every page that the walks and searches of a list can be made of; most find nothing in many keys. */
const lists: readonly (readonly [string, Omit<KeysQuery, "kind" | "limit">])[] = [
  ["the first page", { apiId: "large" }],
  ["a page in the middle", { apiId: "large", after: "key_018000" }],
  ["the last page", { apiId: "large", after: "key_000050" }],
  ["disabled keys, of which there are none", { apiId: "large", enabled: false }],
  ["expired keys, of which there are none", { apiId: "large", expiresBeforeMs: 5 }],
  ["an API without keys", { apiId: "none" }],
  ["an API whose few keys are the oldest", { apiId: "small" }],
  ["an owner's keys", { ownerId: "owner" }],
  ["an owner's disabled keys, of which there are none", { ownerId: "owner", enabled: false }],
  ["an owner's keys of another API", { ownerId: "owner", apiId: "none" }],
  ["an owner's keys of some APIs", { ownerId: "owner", apiIds: ["large", "small"] }],
  ["an owner's keys of many APIs", { ownerId: "owner", apiIds: manyApis(["large"]) }],
  ["an owner's disabled keys of many APIs", { ownerId: "owner", apiIds: manyApis(["large"]), enabled: false }],
  ["a search of an owner's keys of some APIs", { ownerId: "owner", apiIds: ["large", "small"], search: "zzz" }],
  ["a search that finds nothing", { apiId: "large", search: "zzz" }],
  ["a search that finds nothing between others", { apiId: "large", search: "name 5z" }],
  ["a search that finds a few", { apiId: "large", search: "name 00a" }],
  ["a search that finds a few, all filtered out", { apiId: "large", search: "name 00a", enabled: false }],
  ["a search that finds many", { apiId: "large", search: "live_" }],
  ["a search that finds many, all filtered out", { apiId: "large", search: "live_", enabled: false }],
  ["a search in an API whose few keys are the oldest", { apiId: "small", search: "live_" }],
  ["a search of an owner's keys that finds nothing", { ownerId: "owner", search: "zzz" }],
];

/** Fills `keys` from `numbers` with columns `i` and `h`, a text of random digits. */
const fill = (numbers: string, padded: string) => `
  INSERT INTO keys (digest, id, api_id, start, owner_id, name, meta, enabled, has_counter, created_at_ms, updated_at_ms, version, event_id, secret_created_at_ms)
  SELECT h, 'key_' || ${padded}, CASE WHEN i <= 10 THEN 'small' ELSE 'large' END, 'live_' || substr(h, 1, 4),
    CASE WHEN i % 2 = 0 THEN 'owner' END, 'name ' || substr(h, 5, 6), '{}', 1, 0, i, i, 1, '', i FROM ${numbers}`;

/** The statements of a page, with its answer. */
async function statementsOf(engine: SqlEngine, query: Omit<KeysQuery, "kind" | "limit">) {
  const statements: Sql[] = [];
  const scan = (statement: Sql) => {
    statements.push(statement);
    return engine.scan(statement);
  };
  const page = await listKeys({ ...engine, scan }, { kind: "keys", limit: 100, ...query });
  return { page, statements };
}

/** Lists whose pages end at a bound, and how the same keys are found without one. */
const sparse: readonly (readonly [Omit<KeysQuery, "kind" | "limit">, string])[] = [
  [{ apiId: "large", enabled: false }, "api_id = 'large' AND enabled = 0"],
  [{ ownerId: "owner", enabled: false }, "owner_id = 'owner' AND enabled = 0"],
  [{ ownerId: "owner", apiId: "small" }, "owner_id = 'owner' AND api_id = 'small'"],
  [{ ownerId: "owner", apiIds: ["none", "large", "small"], enabled: false }, "owner_id = 'owner' AND enabled = 0"],
  [
    { ownerId: "owner", apiIds: ["large"], search: "name 12" },
    "owner_id = 'owner' AND api_id = 'large' AND substr(name, 1, 7) = 'name 12'",
  ],
  [{ apiId: "large", search: "name 0" }, "api_id = 'large' AND substr(name, 1, 6) = 'name 0'"],
  [
    { apiId: "large", search: "live_a", enabled: false },
    "api_id = 'large' AND substr(start, 1, 6) = 'live_a' AND enabled = 0",
  ],
  [{ ownerId: "owner", search: "name 12" }, "owner_id = 'owner' AND substr(name, 1, 7) = 'name 12'"],
];
/** For a root key that is limited to other APIs than the one with many keys: nothing is there, not even a cursor. */
const foreign: readonly Omit<KeysQuery, "kind" | "limit">[] = [
  {},
  { enabled: false },
  { search: "live_" },
  { search: "zzz" },
].flatMap((asked) => [manyApis([]), ["none"], []].map((apiIds) => ({ ownerId: "owner", ...asked, apiIds })));

const disableSome = "UPDATE keys SET enabled = 0 WHERE created_at_ms % 701 = 0";

async function expectWholeLists(engine: SqlEngine, idsWhere: (condition: string) => Promise<readonly string[]>) {
  const management = createSqlManagement(engine);
  let short = 0;
  for (const [query, condition] of sparse) {
    const pages = await listPages(management, query, { limit: 7 });
    short += pages.filter(({ items, cursor }) => items.length < 7 && cursor !== undefined).length;
    const ids = pages.flatMap(({ items }) => items.map(({ id }) => id));
    expect(ids, JSON.stringify(query)).toEqual(await idsWhere(condition));
  }
  for (const query of foreign) {
    const page = await management.read({ kind: "keys", ...query, limit: 7 });
    expect(page, JSON.stringify(query)).toEqual({ items: [] });
  }
  expect(short, "pages that ended at their bound").toBeGreaterThan(10);
}

describe("a page examines a bounded number of keys, whatever it finds, and all pages together show all keys", () => {
  it("on SQLite", async () => {
    const { engine, file } = await openTestEngine();
    const db = new DatabaseSync(file, { timeout: 5000 });
    onTestFinished(() => db.close());
    let examined = 0;
    db.function("examine", () => {
      examined++;
      return 1;
    });
    db.exec(
      "INSERT INTO apis (id, name, defaults, is_deleting, created_at_ms, updated_at_ms, version, event_id) SELECT id, NULL, '{}', 0, 1, 1, 1, '' FROM (SELECT 'large' AS id UNION SELECT 'small') AS ids",
    );
    const numbers = `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${keysStored}) SELECT i, lower(hex(randomblob(22))) AS h FROM n`;
    db.exec(fill(`(${numbers})`, "printf('%06d', i)"));
    for (const [what, query] of lists) {
      const { page, statements } = await statementsOf(engine, query);
      examined = 0;
      for (const { sql, parameters } of statements.map(toStatement)) {
        const counting = sql.replaceAll(/FROM ("?keys"?) WHERE/g, "FROM $1 WHERE examine() = 1 AND");
        expect(counting).not.toBe(sql);
        const rows = db.prepare(counting).all(...(parameters as string[])) as { id: string | null }[];
        if (statements.length === 1)
          expect(rows.filter(({ id }) => id !== null).length, what).toBeGreaterThanOrEqual(page.items.length);
        const plan = db.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(...(parameters as string[]));
        expect(
          plan.map(({ detail }) => String(detail)).filter((step) => /SCAN keys/.test(step)),
          what,
        ).toEqual([]);
      }
      expect(examined, what).toBeLessThanOrEqual(examinedMax);
    }
    db.exec(disableSome);
    await expectWholeLists(engine, async (condition) =>
      db
        .prepare(`SELECT id FROM keys WHERE ${condition} ORDER BY id DESC`)
        .all()
        .map(({ id }) => String(id)),
    );
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
    await client.query(
      "INSERT INTO apis (id, name, defaults, is_deleting, created_at_ms, updated_at_ms, version, event_id) SELECT id, NULL, '{}', 0, 1, 1, 1, '' FROM (SELECT 'large' AS id UNION SELECT 'small') AS ids",
    );
    const add = (from: number, to: number) =>
      client.query(
        fill(`(SELECT i, md5(i::text) AS h FROM generate_series(${from}, ${to}) AS i) AS n`, "lpad(i::text, 6, '0')"),
      );
    const check = async (when: string) => {
      for (const [what, query] of lists) {
        const { statements } = await statementsOf(engine, query);
        let examined = 0;
        let blocks = 0;
        for (const { text, values } of statements.map(toPgStatement)) {
          const { rows } = await client.query(`EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${text}`, [...values]);
          const plan = rows[0]["QUERY PLAN"][0].Plan as PlanNode;
          examined += rowsExamined(plan, "keys");
          blocks += blocksOf(plan);
        }
        expect(examined, `${what}, ${when}`).toBeLessThanOrEqual(examinedMax);
        // Entries of an index that were passed over are not among the rows. Reading each key takes a few blocks at most.
        expect(blocks, `blocks of ${what}, ${when}`).toBeLessThanOrEqual(examinedMax);
      }
    };
    await add(1, 10);
    await client.query("VACUUM ANALYZE");
    await add(11, keysStored);
    await check("statistics of ten keys");
    await client.query("VACUUM ANALYZE");
    await check("statistics of all keys");
    await client.query(disableSome);
    await expectWholeLists(engine, async (condition) => {
      const { rows } = await client.query<{ id: string }>(`SELECT id FROM keys WHERE ${condition} ORDER BY id DESC`);
      return rows.map(({ id }) => id);
    });
  });
});
