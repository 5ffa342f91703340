import { type Migration, migrations } from "./migrations.ts";
import type { SqlEngine } from "./sql-engine.ts";

/** The data was written by a newer version, which this one cannot be trusted to understand. */
export class SchemaTooNew extends Error {
  override readonly name = "SchemaTooNew";
}

/** Applies what is missing, each migration in a transaction of its own, so that an interrupted run can go on. */
export async function migrateUp(
  engine: SqlEngine,
  nowMs: number,
  known: readonly Migration[] = migrations,
): Promise<readonly string[]> {
  await ensureTable(engine);
  const applied = await appliedNames(engine);
  const unknown = [...applied].filter((name) => !known.some((migration) => migration.name === name));
  if (unknown.length > 0) {
    throw new SchemaTooNew(`the data was written by a newer version of Latchkey (it has ${unknown.join(", ")})`);
  }
  const missing = known.filter((migration) => !applied.has(migration.name));
  for (const migration of missing) {
    const mark = engine.db.insertInto("schema_migrations").values({ name: migration.name, applied_at_ms: nowMs });
    await engine.atomically([...migration.up(engine.db), mark.compile()]);
  }
  return missing.map((migration) => migration.name);
}

/** Takes the latest migration back. Answers its name; undefined when there is none left. */
export async function migrateDown(engine: SqlEngine): Promise<string | undefined> {
  const applied = await appliedNames(engine);
  const latest = migrations.findLast((migration) => applied.has(migration.name));
  if (latest === undefined) return undefined;
  const unmark = engine.db.deleteFrom("schema_migrations").where("name", "=", latest.name);
  await engine.atomically([...latest.down(engine.db), unmark.compile()]);
  return latest.name;
}

async function ensureTable({ db, atomically }: SqlEngine): Promise<void> {
  const table = db.schema
    .createTable("schema_migrations")
    .ifNotExists()
    .addColumn("name", "text", (column) => column.primaryKey())
    .addColumn("applied_at_ms", "bigint", (column) => column.notNull());
  await atomically([table.compile()]);
}

async function appliedNames({ db }: SqlEngine): Promise<Set<string>> {
  const rows = await db.selectFrom("schema_migrations").select("name").execute();
  return new Set(rows.map((row) => row.name));
}
