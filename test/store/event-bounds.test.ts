import { DatabaseSync } from "node:sqlite";
import pg from "pg";
import { describe, expect, it, onTestFinished } from "vitest";
import { formatId, idRandomLength } from "../../src/domain/id.ts";
import { openPgEngine } from "../../src/store/postgres/open-postgres-store.ts";
import { toPgStatement } from "../../src/store/postgres/pg-connection.ts";
import { pgMigrations } from "../../src/store/postgres/pg-migrations.ts";
import type { EventsQuery } from "../../src/store/queries.ts";
import { listEvents } from "../../src/store/sql/list-events.ts";
import { migrateUp } from "../../src/store/sql/migrate.ts";
import type { Sql } from "../../src/store/sql/sql.ts";
import type { SqlEngine } from "../../src/store/sql/sql-engine.ts";
import { createSqlManagement } from "../../src/store/sql/sql-management.ts";
import { tidyEvents } from "../../src/store/sql/tidy.ts";
import { toStatement } from "../../src/store/sqlite/writer-protocol.ts";
import { sized } from "../support/deep.ts";
import { listEventPages } from "../support/manage.ts";
import { createTestDatabase, hasPostgres } from "../support/test-database.ts";
import { blocksOf, type PlanNode, rowsExamined } from "./examined-rows.ts";
import { openTestEngine } from "./sqlite/open-test-engine.ts";

const examinedMax = 10_000;
/** More than a page may examine. */
const eventsStored = sized(12_000, 20_000);
/** As many APIs as a root key can have, at full size: SQLite takes seconds to plan such a list. */
const apisMax = sized(25, 100);
const firstMs = 1_700_000_000_000;

/**
 * One of each millisecond. The oldest ten are of another target, actor, method and API. Of the others some are of a second
 * API, and a few of a second method.
 */
const rows = Array.from({ length: eventsStored }, (_, i) => {
  const atMs = firstMs + i;
  const name = i < 10 ? "small" : "large";
  const method = name === "large" && i % 701 === 0 ? "rare" : name;
  const apiId = name === "large" && i % 50 < 5 ? "second" : name;
  // Of owners: some of the second API alone, most of another one too.
  const apiIds = apiId !== "second" ? null : i % 50 === 4 ? '["second"]' : i % 50 < 2 ? null : '["second", "third"]';
  const id = formatId("evt", atMs, new Uint8Array(idRandomLength).fill(i % 256));
  return { id, atMs, name, method, apiId, apiIds };
});
const columns = "id, at_ms, method, actor, target_id, api_id, api_ids, fields, version";
const isOfThird = ({ apiIds }: (typeof rows)[number]) => apiIds?.includes("third") === true;
const idAt = (index: number) => (rows[index] as { id: string }).id;

const manyApis = (count: number) => Array.from({ length: count }, (_, i) => `none ${i}`);

type Asked = Omit<EventsQuery, "kind" | "limit">;

/** Most find nothing in many events. */
const lists: readonly (readonly [string, Asked])[] = [
  ["the first page", {}],
  ["a page in the middle", { after: idAt(eventsStored / 2) }],
  ["the last page", { after: idAt(50) }],
  ["a target that has none", { targetId: "none" }],
  ["a target", { targetId: "large" }],
  ["a target whose few events are the oldest", { targetId: "small" }],
  ["a target with another method", { targetId: "large", method: "small" }],
  ["an actor with another method", { actor: "large", method: "small" }],
  ["an actor whose few events are the oldest", { actor: "small" }],
  ["a method with an API that has none", { method: "large", apiIds: ["none"] }],
  ["the events of an API", { apiIds: ["large"] }],
  ["the events of an API whose few are the oldest", { apiIds: ["small"] }],
  ["the events of some APIs, which have none", { apiIds: ["none", "nothing"] }],
  ["the events of many APIs", { apiIds: ["large", ...manyApis(apisMax - 1)] }],
  ["a target's events of another API", { targetId: "large", apiIds: ["small"] }],
  ["a target's events of many APIs", { targetId: "large", apiIds: ["large", ...manyApis(apisMax - 1)] }],
  ["an actor's events of another API", { actor: "large", apiIds: ["small", "none"] }],
  ["an actor with another method, of two APIs", { actor: "large", method: "small", apiIds: ["large", "second"] }],
  [
    "an actor with another method, of many APIs",
    { actor: "large", method: "small", apiIds: ["large", ...manyApis(apisMax - 1)] },
  ],
  ["the events since a moment", { sinceMs: firstMs + eventsStored - 20 }],
  [
    "a target's events before a moment, of another method",
    { targetId: "large", untilMs: firstMs + eventsStored - 2000, method: "small" },
  ],
  [
    "the events of one moment, of another method",
    { sinceMs: firstMs + 9000, untilMs: firstMs + 9001, apiIds: ["a", "b"] },
  ],
  ["a target's events after the last", { targetId: "large", sinceMs: firstMs + eventsStored }],
];

/** Lists of which most pages end at their bound, and which events they show. */
const sparse: readonly (readonly [Asked, (row: (typeof rows)[number]) => boolean])[] = [
  [{ targetId: "large", method: "small" }, () => false],
  [{ apiIds: ["small", "none"] }, ({ name }) => name === "small"],
  [{ targetId: "small" }, ({ name }) => name === "small"],
  [{ apiIds: ["small", ...manyApis(apisMax - 15)] }, ({ name }) => name === "small"],
  [{ apiIds: ["large", "second", "small"] }, (row) => !isOfThird(row)],
  [{ apiIds: ["large", "second", "small", "third"] }, () => true],
  [{ apiIds: ["second"] }, (row) => row.apiId === "second" && !isOfThird(row)],
  [{ actor: "large", untilMs: firstMs + 4000 }, ({ name, atMs }) => name === "large" && atMs < firstMs + 4000],
  [{ method: "large", sinceMs: firstMs + eventsStored - 7 }, ({ atMs }) => atMs >= firstMs + eventsStored - 7],
  [{ actor: "large", method: "rare" }, ({ method }) => method === "rare"],
  [{ actor: "large", method: "rare", apiIds: ["large", "second", "third"] }, ({ method }) => method === "rare"],
  [
    { actor: "large", method: "large", apiIds: ["second", "small", "none"] },
    (row) => row.method === "large" && row.apiId === "second" && !isOfThird(row),
  ],
  [
    { targetId: "large", method: "large", apiIds: ["large", "second"], untilMs: firstMs + 4000 },
    (row) => row.method === "large" && row.atMs < firstMs + 4000 && !isOfThird(row),
  ],
];

/** For a root key that is limited to other APIs than those with many events: nothing is there, not even a cursor. */
const foreign: readonly Asked[] = [
  { targetId: "large" },
  { actor: "large" },
  { method: "large" },
  { targetId: "large", actor: "large", method: "large" },
  { actor: "large", method: "large" },
  { actor: "large", method: "small" },
].flatMap((asked) =>
  [["none"], ["none", "small"], [...manyApis(apisMax - 1), "small"], []].map((apiIds) => ({ ...asked, apiIds })),
);

async function statementsOf(engine: SqlEngine, query: Asked): Promise<readonly Sql[]> {
  const statements: Sql[] = [];
  const scan = (statement: Sql) => {
    statements.push(statement);
    return engine.scan(statement);
  };
  await listEvents({ ...engine, scan }, { kind: "events", limit: 100, ...query });
  return statements;
}

async function expectWholeLists(engine: SqlEngine): Promise<void> {
  const management = createSqlManagement(engine);
  for (const [query, isShown] of sparse) {
    const pages = await listEventPages(management, query);
    const ids = pages.flatMap(({ items }) => items.map(({ id }) => id));
    const expected = rows.filter(isShown).map(({ id }) => id);
    expect(ids, JSON.stringify(query)).toEqual(expected.reverse());
  }
  for (const query of foreign) {
    const page = await management.read({ kind: "events", ...query, limit: 100 });
    expect(page, JSON.stringify(query)).toEqual({ items: [] });
  }
}

async function expectTidied(engine: SqlEngine, count: () => Promise<number>): Promise<void> {
  await tidyEvents(engine, firstMs);
  expect(await count()).toBe(eventsStored);
  await tidyEvents(engine, firstMs + 10_250);
  expect(await count()).toBe(eventsStored - 10_250);
  const { items } = await listEvents(engine, { kind: "events", limit: 1, after: idAt(10_251) });
  expect(items.map(({ id }) => id)).toEqual([idAt(10_250)]);
  await tidyEvents(engine, firstMs + eventsStored);
  expect(await count()).toBe(0);
}

describe("a page examines a bounded number of events, whatever it finds, and old ones are removed in pieces of 500", () => {
  it("on SQLite", async () => {
    const { engine, file } = await openTestEngine();
    const db = new DatabaseSync(file, { timeout: 5000 });
    onTestFinished(() => db.close());
    let examined = 0;
    db.function("examine", () => {
      examined++;
      return 1;
    });
    db.exec("BEGIN");
    const insert = db.prepare(`INSERT INTO events (${columns}) VALUES (?, ?, ?, ?, ?, ?, ?, '', 1)`);
    for (const { id, atMs, name, method, apiId, apiIds } of rows)
      insert.run(id, atMs, method, name, name, apiId, apiIds);
    db.exec("COMMIT");
    for (const [what, query] of lists) {
      examined = 0;
      for (const { sql, parameters } of (await statementsOf(engine, query)).map(toStatement)) {
        const counting = sql.replaceAll(/FROM "events" WHERE/g, 'FROM "events" WHERE examine() = 1 AND');
        expect(counting).not.toBe(sql);
        db.prepare(counting).all(...(parameters as string[]));
      }
      expect(examined, what).toBeLessThanOrEqual(examinedMax);
    }
    await expectWholeLists(engine);
    let removedMost = 0;
    const atomically: SqlEngine["atomically"] = async (queries) => {
      const results = await engine.atomically(queries);
      removedMost = Math.max(removedMost, ...results.map(({ changes }) => changes));
      return results;
    };
    await expectTidied({ ...engine, atomically }, async () =>
      Number(db.prepare("SELECT count(*) AS n FROM events").get()?.n),
    );
    expect(removedMost).toBe(500);
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
    const add = (added: typeof rows) =>
      client.query(
        `INSERT INTO events (${columns}) SELECT id, at, method, name, name, api, apis, '', 1
          FROM unnest($1::text[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[])
            AS n (id, at, name, method, api, apis)`,
        (["id", "atMs", "name", "method", "apiId", "apiIds"] as const).map((column) => added.map((row) => row[column])),
      );
    const check = async (when: string) => {
      for (const [what, query] of lists) {
        let examined = 0;
        let blocks = 0;
        for (const { text, values } of (await statementsOf(engine, query)).map(toPgStatement)) {
          const explained = await client.query(`EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${text}`, [...values]);
          const plan = explained.rows[0]["QUERY PLAN"][0].Plan as PlanNode;
          examined += rowsExamined(plan, "events");
          blocks += blocksOf(plan);
        }
        expect(examined, `${what}, ${when}`).toBeLessThanOrEqual(examinedMax);
        expect(blocks, `blocks of ${what}, ${when}`).toBeLessThanOrEqual(examinedMax);
      }
    };
    await add(rows.slice(0, 10));
    await client.query("VACUUM ANALYZE");
    await add(rows.slice(10));
    await check("statistics of ten events");
    await client.query("VACUUM ANALYZE");
    await check("statistics of all events");
    await expectWholeLists(engine);
    await expectTidied(engine, async () => {
      const counted = await client.query("SELECT count(*)::int AS n FROM events");
      return counted.rows[0].n;
    });
  });
});
