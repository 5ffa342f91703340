import { DatabaseSync } from "node:sqlite";
import type { CompiledQuery } from "kysely";
import pg from "pg";
import { describe, expect, it, onTestFinished } from "vitest";
import { formatId, idRandomLength } from "../../src/domain/id.ts";
import { openPgEngine } from "../../src/store/postgres/open-postgres-store.ts";
import { pgMigrations } from "../../src/store/postgres/pg-migrations.ts";
import type { EventsQuery } from "../../src/store/queries.ts";
import { tidyEvents } from "../../src/store/sql/event-rows.ts";
import { listEvents } from "../../src/store/sql/list-events.ts";
import { migrateUp } from "../../src/store/sql/migrate.ts";
import type { SqlEngine } from "../../src/store/sql/sql-engine.ts";
import { createSqlManagement } from "../../src/store/sql/sql-management.ts";
import { listEventPages } from "../support/manage.ts";
import { createTestDatabase, hasPostgres } from "../support/test-database.ts";
import { blocksOf, type PlanNode, rowsExamined } from "./examined-rows.ts";
import { openTestEngine } from "./sqlite/open-test-engine.ts";

const examinedMax = 10_000;
const eventsStored = 20_000;
const firstMs = 1_700_000_000_000;

/** One of each millisecond. The oldest ten are of another target, actor, method and API. */
const rows = Array.from({ length: eventsStored }, (_, i) => {
  const atMs = firstMs + i;
  const name = i < 10 ? "small" : "large";
  return { id: formatId("evt", atMs, new Uint8Array(idRandomLength).fill(i % 256)), atMs, name };
});
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
  ["the events of as many APIs as are walked one by one", { apiIds: ["large", ...manyApis(49)] }],
  ["the events since a moment", { sinceMs: firstMs + eventsStored - 20 }],
  [
    "a target's events before a moment, of another method",
    { targetId: "large", untilMs: firstMs + 18_000, method: "small" },
  ],
  [
    "the events of one moment, of another method",
    { sinceMs: firstMs + 9000, untilMs: firstMs + 9001, apiIds: ["a", "b"] },
  ],
  ["a target's events after the last", { targetId: "large", sinceMs: firstMs + eventsStored }],
];

/** Lists that find the oldest events only, and how many of them. */
const sparse: readonly (readonly [Asked, number])[] = [
  [{ targetId: "large", method: "small" }, 0],
  [{ apiIds: ["small", "none"] }, 10],
  [{ targetId: "small" }, 10],
  [{ apiIds: ["small", ...manyApis(60)] }, 10],
  [{ apiIds: ["large", "small"] }, eventsStored],
  [{ actor: "large", untilMs: firstMs + 4000 }, 3990],
  [{ method: "large", sinceMs: firstMs + eventsStored - 7 }, 7],
];

async function statementsOf(engine: SqlEngine, query: Asked): Promise<readonly CompiledQuery[]> {
  const statements: CompiledQuery[] = [];
  const scan = (statement: CompiledQuery) => {
    statements.push(statement);
    return engine.scan(statement);
  };
  await listEvents({ ...engine, scan }, { kind: "events", limit: 100, ...query });
  return statements;
}

async function expectWholeLists(engine: SqlEngine): Promise<void> {
  const management = createSqlManagement(engine);
  for (const [query, count] of sparse) {
    const pages = await listEventPages(management, query);
    const ids = pages.flatMap(({ events }) => events.map(({ id }) => id));
    expect(ids, JSON.stringify(query)).toHaveLength(count);
    expect(ids).toEqual(ids.toSorted().reverse());
  }
}

async function expectTidied(engine: SqlEngine, count: () => Promise<number>): Promise<void> {
  await tidyEvents(engine, firstMs);
  expect(await count()).toBe(eventsStored);
  await tidyEvents(engine, firstMs + 10_250);
  expect(await count()).toBe(eventsStored - 10_250);
  const { events } = await listEvents(engine, { kind: "events", limit: 1, after: idAt(10_251) });
  expect(events.map(({ id }) => id)).toEqual([idAt(10_250)]);
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
    const insert = db.prepare("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, '', 1)");
    for (const { id, atMs, name } of rows) insert.run(id, atMs, name, name, name, name);
    db.exec("COMMIT");
    for (const [what, query] of lists) {
      examined = 0;
      for (const { sql, parameters } of await statementsOf(engine, query)) {
        const counting = sql.replaceAll(/FROM "events" WHERE/g, 'FROM "events" WHERE examine() = 1 AND');
        expect(counting).not.toBe(sql);
        db.prepare(counting).all(...(parameters as string[]));
      }
      expect(examined, what).toBeLessThanOrEqual(examinedMax);
    }
    await expectWholeLists(engine);
    let removedMost = 0;
    const noting: SqlEngine["db"] = engine.db.withPlugin({
      transformQuery: ({ node }) => node,
      async transformResult({ result }) {
        removedMost = Math.max(removedMost, Number(result.numAffectedRows ?? 0));
        return result;
      },
    });
    await expectTidied({ ...engine, db: noting }, async () =>
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
        "INSERT INTO events SELECT id, at, name, name, name, name, '', 1 FROM unnest($1::text[], $2::bigint[], $3::text[]) AS n (id, at, name)",
        [added.map(({ id }) => id), added.map(({ atMs }) => atMs), added.map(({ name }) => name)],
      );
    const check = async (when: string) => {
      for (const [what, query] of lists) {
        let examined = 0;
        let blocks = 0;
        for (const { sql, parameters } of await statementsOf(engine, query)) {
          const explained = await client.query(`EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${sql}`, [...parameters]);
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
