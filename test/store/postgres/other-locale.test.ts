import { describe, expect, it, onTestFinished } from "vitest";
import { systemClock } from "../../../src/ambient/clock.ts";
import { createMetrics } from "../../../src/ambient/metrics.ts";
import { createSystemRandom } from "../../../src/ambient/random.ts";
import { openPgEngine, openPostgresStore } from "../../../src/store/postgres/open-postgres-store.ts";
import { pgMigrations } from "../../../src/store/postgres/pg-migrations.ts";
import { migrateUp } from "../../../src/store/sql/migrate.ts";
import { eventCases } from "../../contract/event-cases.ts";
import { listCases } from "../../contract/list-cases.ts";
import { query } from "../../support/run-statement.ts";
import { TestClock } from "../../support/test-clock.ts";
import { createEmptyDatabase, hasPostgres } from "../../support/test-database.ts";

/** The servers of the other tests compare texts byte by byte; most others do not. */
const english = "TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'en-US'";

const cases = [...listCases, ...eventCases].filter(({ name }) =>
  /order of their bytes|exactly the|what the plain store/.test(name),
);

describe.runIf(hasPostgres)("in a database that sorts texts by language", () => {
  it.each(cases)("$name", async ({ run }) => {
    const clock = new TestClock();
    const url = await createEmptyDatabase(english);
    const { rows } = await query(url, "SELECT 'a' < 'B' AS by_language");
    expect(rows).toEqual([{ by_language: true }]);
    const ambient = { clock: systemClock, metrics: createMetrics(), random: createSystemRandom() };
    const bounds = { connectionsMax: 4, lanes: 1, usageTimeoutMs: 20_000 };
    const store = await openPostgresStore({ url, ...bounds, ledgerClock: clock, ...ambient });
    onTestFinished(() => store.close());
    await run(store, clock);
  });

  it("what refers to a column is compared as that one is, so that joins use its index", async () => {
    const url = await createEmptyDatabase(english);
    const engine = openPgEngine({ url, connectionsMax: 1 });
    onTestFinished(() => engine.close());
    await migrateUp(engine, 1, pgMigrations);
    const { rows } = await query(
      url,
      `SELECT con.conrelid::regclass || '.' || own.attname AS name, own.attcollation = theirs.attcollation AS is_alike
       FROM pg_constraint con
       JOIN pg_attribute own ON own.attrelid = con.conrelid AND own.attnum = con.conkey[1]
       JOIN pg_attribute theirs ON theirs.attrelid = con.confrelid AND theirs.attnum = con.confkey[1]
       WHERE con.contype = 'f'
       UNION ALL
       SELECT own.attrelid::regclass || '.subject', own.attcollation = id.attcollation
       FROM pg_attribute own
       JOIN pg_attribute id ON id.attrelid = 'keys'::regclass AND id.attname = 'id'
       WHERE own.attrelid IN ('counters'::regclass, 'permit_windows'::regclass) AND own.attname = 'subject'`,
    );
    expect(rows.length).toBeGreaterThanOrEqual(4);
    expect(rows.filter(({ is_alike }) => !is_alike).map(({ name }) => name)).toEqual([]);
  });
});
