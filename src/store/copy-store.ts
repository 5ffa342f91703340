import type { CopyTarget } from "./postgres/copy-target.ts";
import { DatabaseRefused } from "./postgres/pg-error.ts";
import {
  type CopiedKey,
  type CopiedTable,
  copiedKeyOf,
  copiedTables,
  findUnfinishedCopy,
  noteCopyBegun,
} from "./sql/copied-tables.ts";
import { sql } from "./sql/sql.ts";
import type { SqlEngine } from "./sql/sql-engine.ts";

export interface TableCounts {
  readonly table: string;
  readonly source: number;
  readonly target: number;
}

export interface CopyOptions {
  readonly nowMs: number;
  readonly newId: () => string;
  /** Called before the target can be served. */
  readonly onServable: () => void;
  /** Called after every batch. */
  readonly onProgress: (table: string, copied: number, total: number) => void;
}

const batchRows = 1000;

/**
 * Copies a store that is not being served into an empty database, or continues a copy that was interrupted. The target
 * can be served when all of it is there, and not before. Answers the number of rows in each table; if they differ the
 * copy is not finished.
 */
export async function copyStore(
  source: SqlEngine,
  target: CopyTarget,
  options: CopyOptions,
): Promise<readonly TableCounts[]> {
  const selectFeed = sql`SELECT epoch, has_imported_keys FROM change_feed`;
  const [feed] = await source.read<{ epoch: string; has_imported_keys: number }>(selectFeed);
  if (feed === undefined) throw new Error("the change feed has no epoch");
  const { epoch } = feed;
  const unfinished = await target.inspect();
  if (unfinished !== undefined && unfinished.source !== epoch) {
    throw new DatabaseRefused("the database of LATCHKEY_COPY_TO has an unfinished copy of another store: empty it");
  }
  await target.migrate(options.nowMs);
  const { id, from } = await beginOrContinue();

  for (const copied of copiedTables.slice(from.table)) {
    const isContinued = copied === copiedTables[from.table] && from.after !== undefined;
    let after: CopiedKey | undefined = isContinued ? from.after : undefined;
    let count = isContinued ? await target.count(copied) : 0;
    const total = await countRows(source, copied);
    for (;;) {
      const rows = await readRows(source, copied, after);
      if (rows.length === 0) break;
      await target.add(id, copied, rows);
      after = copiedKeyOf(copied, rows.at(-1));
      count += rows.length;
      options.onProgress(copied.table, count, total);
    }
  }
  const counts: TableCounts[] = [];
  for (const copied of copiedTables) {
    const [inSource, inTarget] = await Promise.all([countRows(source, copied), target.count(copied)]);
    counts.push({ table: copied.table, source: inSource, target: inTarget });
  }
  if (counts.every((count) => count.source === count.target)) {
    options.onServable();
    await target.finish(id, feed.has_imported_keys);
  }
  return counts;

  /** A copy is continued if the source was not served since it was begun. Otherwise it begins again. */
  async function beginOrContinue(): Promise<{ id: string; from: { table: number; after?: CopiedKey } }> {
    if (unfinished !== undefined && unfinished.id === (await findUnfinishedCopy(source))) {
      const table = copiedTables.findIndex((copied) => copied.table === unfinished.copied_table);
      const from = table < 0 ? { table: 0 } : { table, after: JSON.parse(unfinished.copied_through ?? "null") };
      return { id: unfinished.id, from };
    }
    const id = options.newId();
    await noteCopyBegun(source, id);
    await target.begin(id, epoch, unfinished);
    return { id, from: { table: 0 } };
  }
}

type Row = Record<string, unknown>;

/** In the order of the primary key, after the one given. */
function readRows(
  source: SqlEngine,
  { table, key }: CopiedTable,
  after: CopiedKey | undefined,
): Promise<readonly Row[]> {
  const columns = sql.join(key.map(sql.ref));
  const isLater = after === undefined ? sql`1 = 1` : sql`(${columns}) > (${sql.join(after)})`;
  const order = sql`ORDER BY ${columns} LIMIT ${sql.lit(batchRows)}`;
  return source.read(sql`SELECT * FROM ${sql.ref(table)} WHERE ${isLater} ${order}`);
}

async function countRows(source: SqlEngine, { table }: CopiedTable): Promise<number> {
  const [counted] = await source.read<{ n: number }>(sql`SELECT COUNT(*) AS n FROM ${sql.ref(table)}`);
  return Number(counted?.n);
}
