import { sql } from "kysely";
import { describe, expect, it, onTestFinished } from "vitest";
import { migrateUp } from "../../../src/store/sql/migrate.ts";
import { type Migration, migrations } from "../../../src/store/sql/migrations.ts";
import { openSqliteEngine } from "../../../src/store/sqlite/open-sqlite-store.ts";
import { migrateDown } from "./migrate-down.ts";
import { readRows, testOptions } from "./open-test-engine.ts";

const names = migrations.map(({ name }) => name);
const schemaOf = (file: string) => readRows(file, "SELECT type, name, sql FROM sqlite_master ORDER BY type, name");

async function openEmptyEngine() {
  const { options, file } = testOptions();
  const engine = await openSqliteEngine(options);
  onTestFinished(() => engine.close());
  return { engine, file };
}

describe("migrations", () => {
  it("are applied in order, each once", async () => {
    const { engine, file } = await openEmptyEngine();
    expect(await migrateUp(engine, 1)).toEqual(names);
    expect(await migrateUp(engine, 2)).toEqual([]);
    const applied = readRows(file, "SELECT * FROM schema_migrations ORDER BY name");
    expect(applied).toEqual(names.map((name) => ({ name, applied_at_ms: 1n })));
  });

  it("go down one by one to nothing, and up again to the same schema", async () => {
    const { engine, file } = await openEmptyEngine();
    await migrateUp(engine, 1);
    const schema = schemaOf(file);
    expect(schema.length).toBeGreaterThan(names.length);
    for (const name of names.toReversed()) expect(await migrateDown(engine)).toBe(name);
    expect(await migrateDown(engine)).toBeUndefined();
    expect(schemaOf(file).filter(({ type, name }) => type === "table" && name !== "schema_migrations")).toEqual([]);
    expect(await migrateUp(engine, 2)).toEqual(names);
    expect(schemaOf(file)).toEqual(schema);
  });

  it("go one down and up with data in the tables, which those of other migrations keep", async () => {
    const { engine, file } = await openEmptyEngine();
    await migrateUp(engine, 1);
    await engine.writer.run([{ sql: "INSERT INTO apis VALUES ('api', 1)", parameters: [] }]);
    await migrateDown(engine);
    expect(await migrateUp(engine, 2)).toEqual(names.slice(-1));
    expect(readRows(file, "SELECT id FROM apis")).toEqual([{ id: "api" }]);
  });

  it("that fail half-way leave nothing of themselves, keep those before them, and can go on later", async () => {
    const { engine, file } = await openEmptyEngine();
    const last = migrations.at(-1) as Migration;
    const failing: Migration = {
      ...last,
      up: (db, end) => [...last.up(db, end), sql`SELECT * FROM nowhere`.compile(db)],
    };
    await expect(migrateUp(engine, 1, [...migrations.slice(0, -1), failing])).rejects.toThrow("nowhere");
    expect(readRows(file, "SELECT name FROM schema_migrations ORDER BY name")).toEqual(
      names.slice(0, -1).map((name) => ({ name })),
    );
    expect(await migrateUp(engine, 2)).toEqual(names.slice(-1));
  });
});
