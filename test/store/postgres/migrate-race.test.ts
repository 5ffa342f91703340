import { describe, expect, it, onTestFinished } from "vitest";
import { openPgEngine } from "../../../src/store/postgres/open-postgres-store.ts";
import { toStoreError } from "../../../src/store/postgres/pg-error.ts";
import { pgMigrations } from "../../../src/store/postgres/pg-migrations.ts";
import { migrateUp } from "../../../src/store/sql/migrate.ts";
import { UniqueViolation } from "../../../src/store/sql/sql-engine.ts";
import { createTestDatabase, hasPostgres } from "../../support/test-database.ts";

// All three were seen; the last is too rare to be met on purpose.
it.each(["23505", "42P07", "42710"])("a loser of a race knows it by SQLSTATE %s", (code) => {
  expect(toStoreError(Object.assign(new Error(), { code, severity: "ERROR" }))).toBeInstanceOf(UniqueViolation);
});

describe.runIf(hasPostgres)("migrations", () => {
  // Which of several errors a loser gets depends on how far it came: hence many races, and many in each.
  it.each(Array.from({ length: 12 }, (_, i) => i))(
    "that eight start at once are each applied by one (race %i)",
    async () => {
      const url = await createTestDatabase();
      const engines = Array.from({ length: 8 }, () => openPgEngine({ url, connectionsMax: 1 }));
      onTestFinished(() => Promise.all(engines.map((engine) => engine.close())).then(() => {}));
      // Connected first, so that they meet.
      await Promise.all(engines.map((engine) => engine.ledgerNowMs()));
      const applied = await Promise.all(engines.map((engine) => migrateUp(engine, 0, pgMigrations)));
      expect(applied.flat().sort()).toEqual(pgMigrations.map(({ name }) => name).sort());
    },
  );
});
