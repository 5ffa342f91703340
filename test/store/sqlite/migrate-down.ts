import { migrationStatus } from "../../../src/store/sql/migrate.ts";
import { migrations } from "../../../src/store/sql/migrations.ts";
import type { SqlEngine } from "../../../src/store/sql/sql-engine.ts";

/** Takes the latest migration back. Answers its name; undefined when there is none left. */
export async function migrateDown(engine: SqlEngine): Promise<string | undefined> {
  const { applied } = await migrationStatus(engine);
  const latest = migrations.findLast(({ name }) => applied.includes(name));
  if (latest === undefined) return undefined;
  const unmark = engine.db.deleteFrom("schema_migrations").where("name", "=", latest.name);
  await engine.atomically([...latest.down(engine.db), unmark.compile()]);
  return latest.name;
}
