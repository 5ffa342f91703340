import { describe, expect, it } from "vitest";
import { Unavailable } from "../../src/domain/unavailable.ts";
import { openPgEngine } from "../../src/store/postgres/open-postgres-store.ts";
import { migrateUp } from "../../src/store/sql/migrate.ts";
import { type Sql, sql } from "../../src/store/sql/sql.ts";
import type { SqlEngine } from "../../src/store/sql/sql-engine.ts";
import { toStatement } from "../../src/store/sqlite/writer-protocol.ts";
import { createEmptyDatabase, hasPostgres } from "../support/test-database.ts";
import { atTestEnd } from "../support/test-end.ts";
import { type TableEngine, tableEngines } from "./table-engines.ts";

/* Counters that an older version has made get meters. */

const pieceRows = 10_000;
const counters = 2 * pieceRows + 500;
const upgradedMs = 1_800_000_000_000;

/** What was there before counters had meters. */
const olderOf = ({ migrations }: TableEngine) =>
  migrations.filter(({ name }) => name <= "0004-required-owners" || name === "pg-0001-first");

async function addCounters(engine: SqlEngine): Promise<void> {
  await engine.atomically([
    sql`WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${sql.lit(counters)})
      INSERT INTO counters (subject, remaining) SELECT 'key_' || n, n % 1000 FROM numbers`,
  ]);
}

/** How many counters there are with a meter of each time, and all the others. */
async function metersOf(engine: SqlEngine): Promise<unknown> {
  const isMetered = sql`credited = remaining AND metered_hour = 0 AND metered_since_ms > 0`;
  const rows = await engine.read<{ since: number; n: number }>(sql`
    SELECT CASE WHEN ${isMetered} THEN metered_since_ms ELSE -1 END AS since, COUNT(*) AS n
    FROM counters GROUP BY 1 ORDER BY 1`);
  return rows.map(({ since, n }) => [Number(since), Number(n)]);
}

/** The engine, which tells how many rows each UPDATE has changed. */
function watched(engine: SqlEngine, before: () => void = () => {}) {
  const changed: number[] = [];
  const atomically = async (statements: readonly Sql[]) => {
    before();
    const results = await engine.atomically(statements);
    const isUpdate = (at: number) => toStatement(statements[at] as Sql).sql.startsWith("UPDATE");
    changed.push(...results.filter((_, at) => isUpdate(at)).map(({ changes }) => changes));
    return results;
  };
  return { engine: { ...engine, atomically }, changed };
}

describe.each(tableEngines)("counters of an older version on $name", (tables) => {
  it("are metered from the upgrade on, as if what is left then was all that they were given, piece by piece", async () => {
    const engine = await tables.open(olderOf(tables));
    await addCounters(engine);
    const { engine: seen, changed } = watched(engine);
    const applied = await migrateUp(seen, upgradedMs, tables.migrations);
    expect(applied).toEqual(expect.arrayContaining(["0005-readings", "0006-metered-counters"]));
    expect(await metersOf(engine)).toEqual([[upgradedMs, counters]]);
    expect(changed).toEqual([pieceRows, pieceRows, 500]);
  });

  it("that were metered before an upgrade was interrupted stay as they are when it goes on", async () => {
    const engine = await tables.open(olderOf(tables));
    await addCounters(engine);
    const { engine: failing, changed } = watched(engine, () => {
      if (changed.includes(pieceRows)) throw new Error("interrupted");
    });
    await expect(migrateUp(failing, upgradedMs, tables.migrations)).rejects.toThrow("interrupted");
    expect(await metersOf(engine)).toEqual([
      [-1, counters - pieceRows],
      [upgradedMs, pieceRows],
    ]);
    expect(await migrateUp(engine, upgradedMs + 1, tables.migrations)).toContain("0006-metered-counters");
    expect(await metersOf(engine)).toEqual([
      [upgradedMs, pieceRows],
      [upgradedMs + 1, counters - pieceRows],
    ]);
  });

  it("that have a meter keep it when an upgrade that was complete but not noted is repeated", async () => {
    const engine = await tables.open();
    await engine.atomically([
      sql`DELETE FROM schema_migrations WHERE name = '0006-metered-counters'`,
      sql`INSERT INTO counters (subject, remaining, credited, metered_hour, metered_since_ms) VALUES ('used', 3, 9, 4, 5)`,
    ]);
    expect(await migrateUp(engine, upgradedMs, tables.migrations)).toEqual(["0006-metered-counters"]);
    const columns = sql`credited, remaining, metered_hour, metered_since_ms`;
    expect(await engine.read(sql`SELECT ${columns} FROM counters`)).toEqual([
      { credited: 9, remaining: 3, metered_hour: 4, metered_since_ms: 5 },
    ]);
  });
});

describe.runIf(hasPostgres)("counters of an older version that several processes upgrade at the same time", () => {
  it("are metered by one of them each, and every process goes on", async () => {
    const [, tables] = tableEngines as readonly [TableEngine, TableEngine];
    const url = await createEmptyDatabase();
    const engines = Array.from({ length: 3 }, () => openPgEngine({ url, connectionsMax: 1 }));
    atTestEnd(() => Promise.all(engines.map((engine) => engine.close())));
    const first = engines[0] as SqlEngine;
    await migrateUp(first, 1, olderOf(tables));
    await addCounters(first);
    // Connected first, so that they meet.
    await Promise.all(engines.map((engine) => engine.ledgerNowMs()));
    const all = engines.map((engine) => watched(engine));
    // As a start does: on a busy machine one piece takes longer than another process waits for it.
    const upgrade = async (engine: SqlEngine, nowMs: number): Promise<unknown> =>
      migrateUp(engine, nowMs, tables.migrations).catch((error: unknown) => {
        if (!(error instanceof Unavailable)) throw error;
        return upgrade(engine, nowMs);
      });
    await Promise.all(all.map(({ engine }, i) => upgrade(engine, upgradedMs + i)));
    const noted = await first.read<{ name: string }>(sql`SELECT name FROM schema_migrations`);
    expect(noted.map(({ name }) => name).sort()).toEqual(tables.migrations.map(({ name }) => name).sort());
    // However the pieces went to them.
    const rows = await first.read<{ n: number }>(sql`SELECT COUNT(*) AS n FROM counters
      WHERE credited = remaining AND metered_hour = 0 AND metered_since_ms >= ${upgradedMs}`);
    expect(Number(rows[0]?.n)).toBe(counters);
    const changed = all.flatMap((each) => each.changed);
    expect(changed.reduce((sum, count) => sum + count, 0)).toBe(counters);
  });
});
