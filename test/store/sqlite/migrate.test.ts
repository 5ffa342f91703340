import { describe, expect, it, onTestFinished } from "vitest";
import { migrateUp } from "../../../src/store/sql/migrate.ts";
import { type Migration, migrations, type StatementsMigration } from "../../../src/store/sql/migrations.ts";
import { sql } from "../../../src/store/sql/sql.ts";
import { openSqliteEngine } from "../../../src/store/sqlite/open-sqlite-store.ts";
import { readRows, testOptions } from "./open-test-engine.ts";

/** One more than there are, as a later version has it. */
const later: StatementsMigration = {
  name: "9998-later",
  up: () => [sql`CREATE TABLE later (id text)`],
};
const index: Migration = {
  name: "9999-index",
  index: { name: "keys_of_a_later_version", table: "keys", columns: ["name", "id"], where: "name IS NOT NULL" },
};
const known = [...migrations, later, index];
const names = known.map(({ name }) => name);

async function openEmptyEngine() {
  const { options, file } = testOptions();
  const engine = await openSqliteEngine(options);
  onTestFinished(() => engine.close());
  return { engine, file };
}

describe("migrations", () => {
  it("are applied in order, each once", async () => {
    const { engine, file } = await openEmptyEngine();
    expect(await migrateUp(engine, 1, known)).toEqual(names);
    expect(await migrateUp(engine, 2, known)).toEqual([]);
    const applied = readRows(file, "SELECT * FROM schema_migrations ORDER BY name");
    expect(applied).toEqual(names.map((name) => ({ name, applied_at_ms: 1n })));
    const made = readRows(file, "SELECT sql FROM sqlite_master WHERE name = 'keys_of_a_later_version'");
    expect(made).toEqual([{ sql: expect.stringContaining("ON keys (name, id) WHERE name IS NOT NULL") }]);
  });

  it("go on where an earlier version stopped, and keep its data", async () => {
    const { engine, file } = await openEmptyEngine();
    await migrateUp(engine, 1);
    await engine.writer.run([
      {
        sql: "INSERT INTO apis (id, defaults, is_deleting, created_at_ms, updated_at_ms, version, event_id) VALUES ('api', '{}', 0, 1, 1, 1, '')",
        parameters: [],
      },
    ]);
    expect(await migrateUp(engine, 2, known)).toEqual([later.name, index.name]);
    expect(readRows(file, "SELECT id FROM apis")).toEqual([{ id: "api" }]);
  });

  it("that fail half-way leave nothing of themselves, keep those before them, and can go on later", async () => {
    const { engine, file } = await openEmptyEngine();
    const failing: StatementsMigration = {
      ...later,
      up: (inPrimaryKey) => [...later.up(inPrimaryKey), sql`SELECT * FROM nowhere`],
    };
    await expect(migrateUp(engine, 1, [...migrations, failing])).rejects.toThrow("nowhere");
    expect(readRows(file, "SELECT name FROM schema_migrations ORDER BY name")).toEqual(
      migrations.map(({ name }) => ({ name })),
    );
    expect(readRows(file, "SELECT name FROM sqlite_master WHERE name = 'later'")).toEqual([]);
    expect(await migrateUp(engine, 2, known)).toEqual([later.name, index.name]);
  });
});
