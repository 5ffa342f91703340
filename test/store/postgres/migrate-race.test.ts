import { setTimeout as delay } from "node:timers/promises";
import pg from "pg";
import { describe, expect, it, onTestFinished } from "vitest";
import { Unavailable } from "../../../src/domain/unavailable.ts";
import { openPgEngine } from "../../../src/store/postgres/open-postgres-store.ts";
import { toStoreError } from "../../../src/store/postgres/pg-error.ts";
import { pgMigrations } from "../../../src/store/postgres/pg-migrations.ts";
import { migrateUp } from "../../../src/store/sql/migrate.ts";
import type { Migration } from "../../../src/store/sql/migrations.ts";
import { sql } from "../../../src/store/sql/sql.ts";
import { UniqueViolation } from "../../../src/store/sql/sql-engine.ts";
import { isDeep, sized } from "../../support/deep.ts";
import { createEmptyDatabase, hasPostgres } from "../../support/test-database.ts";

// All three were seen; the last is too rare to be met on purpose.
if (!isDeep)
  it.each(["23505", "42P07", "42710"])("a loser of a race knows it by SQLSTATE %s", (code) => {
    expect(toStoreError(Object.assign(new Error(), { code, severity: "ERROR" }))).toBeInstanceOf(UniqueViolation);
  });

/** One more than there are, as a later version has it. */
const next: Migration = {
  name: "9999-next",
  up: () => [sql`ALTER TABLE keys ADD COLUMN later text`],
};
/** Longer than a request of ours may wait for a lock. */
const longMs = 600;

/** A database with its tables, and another process that has a transaction open in it. */
async function migratedBesides(statement: string) {
  const url = await createEmptyDatabase();
  const engine = openPgEngine({ url, connectionsMax: 1 });
  onTestFinished(() => engine.close());
  await migrateUp(engine, 0, pgMigrations);
  const other = new pg.Client({ connectionString: url });
  onTestFinished(() => other.end());
  await other.connect();
  await other.query(`BEGIN; ${statement}`);
  return { engine, other };
}

describe.runIf(hasPostgres)("migrations", () => {
  // Which of several errors a loser gets depends on how far it came: hence many races, and many in each.
  it.each(Array.from({ length: sized(3, 12) }, (_, i) => i))(
    "that eight start at once are each applied by one (race %i)",
    async () => {
      const url = await createEmptyDatabase();
      const engines = Array.from({ length: 8 }, () => openPgEngine({ url, connectionsMax: 1 }));
      onTestFinished(() => Promise.all(engines.map((engine) => engine.close())).then(() => {}));
      // Connected first, so that they meet.
      await Promise.all(engines.map((engine) => engine.ledgerNowMs()));
      const applied = await Promise.all(engines.map((engine) => migrateUp(engine, 0, pgMigrations)));
      expect(applied.flat().sort()).toEqual(pgMigrations.map(({ name }) => name).sort());
    },
  );

  if (!isDeep) {
    it("wait for another process that applies them, longer than a request may wait for a lock", async () => {
      const { engine, other } = await migratedBesides("INSERT INTO schema_migrations VALUES ('9999-next', 0)");
      const applying = migrateUp(engine, 0, [...pgMigrations, next]);
      await delay(longMs);
      await other.query("ROLLBACK");
      expect(await applying).toEqual([next.name]);
    });

    it("give up soon on a table that is in use, because its users would wait behind them", async () => {
      const { engine, other } = await migratedBesides("SELECT * FROM keys");
      await expect(migrateUp(engine, 0, [...pgMigrations, next])).rejects.toThrow(Unavailable);
      await other.query("COMMIT");
      expect(await migrateUp(engine, 0, [...pgMigrations, next])).toEqual([next.name]);
    });
  }
});
