import { findDataText } from "./copied-tables.ts";
import { type FillDefinition, type Migration, migrations } from "./migrations.ts";
import { sql } from "./sql.ts";
import { type SqlEngine, UniqueViolation } from "./sql-engine.ts";

/** The data was written by a newer version; this version may not understand it. */
export class SchemaTooNew extends Error {
  override readonly name = "SchemaTooNew";
}

/** What a start does with a store that is empty, or of before. */
export interface StoreStartOptions {
  /** It throws `StoreEmpty`, and creates nothing. */
  readonly mustExist?: boolean;
  /** Called by the process that has created the store. */
  readonly onCreated?: () => void;
  readonly onUpgrade?: OnUpgrade;
}

/** Called from time to time while a large table is upgraded. */
export type OnUpgrade = (table: string, done: number, total: number) => void;

/** There is no data where there has to be some. */
export class StoreEmpty extends Error {
  override readonly name = "StoreEmpty";

  constructor(where: string) {
    super(
      `${where} has no data of Latchkey, and LATCHKEY_STORE=existing creates none: ` +
        "bring the data back (a volume, a backup), or begin without any keys with LATCHKEY_STORE=create",
    );
  }
}

/**
 * Throws `StoreEmpty` for a store without tables, and for one whose tables have no API, key, owner, root key or event, as
 * `latchkey migrate up` leaves it. Writes nothing.
 */
export async function requireData(engine: SqlEngine, where: string): Promise<void> {
  const there = await engine.read<{ name: string }>(sql`SELECT name FROM ${engine.tablesThere} AS there`);
  const found = await engine.read(sql.raw(findDataText(there.map(({ name }) => name))));
  if (found.length === 0) throw new StoreEmpty(where);
}

/** Whether these migrations, which were just applied, created the store. */
export function isNewStore(applied: readonly string[]): boolean {
  return applied.includes((migrations[0] as Migration).name);
}

/**
 * Applies the missing migrations, so that an interrupted run can continue, and answers the names of those that it has
 * applied itself. Any number of processes may do so at the same time. Statements run in a transaction that first inserts
 * the migration's name: the others wait there for it to end, and then find that the name exists. An index gets its name
 * when it is complete, and values that are filled in when all rows have them.
 */
export async function migrateUp(
  engine: SqlEngine,
  nowMs: number,
  known: readonly Migration[] = migrations,
  onUpgrade: OnUpgrade = () => {},
): Promise<readonly string[]> {
  const applied: string[] = [];
  for (const migration of (await migrationStatus(engine, known)).missing) {
    const claim = sql`INSERT INTO schema_migrations (name, applied_at_ms) VALUES (${migration.name}, ${nowMs})`;
    if ("index" in migration) await engine.buildIndex(migration.index);
    if ("fill" in migration) await fillRows(engine, migration.fill, nowMs, onUpgrade);
    const statements = "up" in migration ? migration.up(engine.inPrimaryKey) : [];
    const isOurs = await unlessTaken(engine.migrate(claim, statements));
    if (isOurs) applied.push(migration.name);
    else if (!(await appliedNames(engine)).has(migration.name))
      throw new Error(`${migration.name} breaks a unique key`);
  }
  return applied;
}

/** Rows that are looked at in one transaction. */
const pieceRows = 10_000;
const reportedRows = 100_000;

async function fillRows(
  engine: SqlEngine,
  { table, key, isMissing, values }: FillDefinition,
  nowMs: number,
  onUpgrade: OnUpgrade,
): Promise<void> {
  const [from, id] = [sql.ref(table), sql.ref(key)];
  const [counted] = await engine.read<{ n: number }>(sql`SELECT COUNT(*) AS n FROM ${from}`);
  const total = Number(counted?.n);
  for (let after = "", done = 0; done < total; done += pieceRows) {
    if (done > 0 && done % reportedRows === 0) onUpgrade(table, done, total);
    const [last] = await engine.read<{ id: string }>(
      sql`SELECT ${id} AS id FROM ${from} WHERE ${id} > ${after} ORDER BY ${id} LIMIT 1 OFFSET ${sql.lit(pieceRows - 1)}`,
    );
    const upTo = last === undefined ? sql`` : sql`AND ${id} <= ${last.id}`;
    const rows = sql`SELECT ${id} FROM ${from} WHERE ${id} > ${after} ${upTo} AND ${isMissing} ORDER BY ${id} ${engine.forUpdate}`;
    await engine.atomically([sql`UPDATE ${from} SET ${values(nowMs)} WHERE ${engine.isAnyOf(key, rows)}`]);
    if (last === undefined) return;
    after = last.id;
  }
}

/** Throws `SchemaTooNew` where the data has migrations that this version does not know. */
export async function migrationStatus(
  engine: SqlEngine,
  known: readonly Migration[] = migrations,
): Promise<{ applied: readonly string[]; missing: readonly Migration[] }> {
  const table = sql`CREATE TABLE IF NOT EXISTS schema_migrations (name text PRIMARY KEY, applied_at_ms bigint NOT NULL)`;
  await unlessTaken(engine.atomically([table]));
  return compareMigrations([...(await appliedNames(engine))], known);
}

/** Throws `SchemaTooNew` where the data has migrations that this version does not know. */
export function compareMigrations(
  applied: readonly string[],
  known: readonly Migration[],
  written = "the data was written",
): { applied: readonly string[]; missing: readonly Migration[] } {
  const unknown = applied.filter((name) => !known.some((migration) => migration.name === name));
  if (unknown.length > 0) {
    throw new SchemaTooNew(`${written} by a newer version of Latchkey (it has ${unknown.join(", ")})`);
  }
  return { applied, missing: known.filter((migration) => !applied.includes(migration.name)) };
}

/** Whether we applied it; if not, another process did at the same time. */
async function unlessTaken(work: Promise<unknown>): Promise<boolean> {
  try {
    await work;
    return true;
  } catch (error) {
    if (error instanceof UniqueViolation) return false;
    throw error;
  }
}

async function appliedNames(engine: SqlEngine): Promise<Set<string>> {
  const rows = await engine.read<{ name: string }>(sql`SELECT name FROM schema_migrations`);
  return new Set(rows.map((row) => row.name));
}
