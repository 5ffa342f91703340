import { Unavailable } from "../../domain/unavailable.ts";
import { type CopiedTable, copiedKeyOf, copiedTables, findDataText, tableNames } from "../sql/copied-tables.ts";
import { migrateUp } from "../sql/migrate.ts";
import { UniqueViolation } from "../sql/sql-engine.ts";
import { openPgEngine, type PgEngine } from "./open-postgres-store.ts";
import { PatientConnection } from "./patient-connection.ts";
import type { PgReply } from "./pg-connection.ts";
import { DatabaseRefused, orRefused, toStoreError } from "./pg-error.ts";
import { pgMigrations } from "./pg-migrations.ts";
import { checkUrl } from "./pg-session.ts";

interface Position {
  /** The last table of which something was copied, and the JSON of the last primary key. Null: nothing was. */
  readonly copied_table: string | null;
  readonly copied_through: string | null;
}

/** A copy into this database that is not finished. */
export interface UnfinishedCopy extends Position {
  readonly id: string;
  /** The epoch of the source's change feed. */
  readonly source: string;
}

/** A process that serves writes a heartbeat twice a second. */
const isServed = "EXISTS (SELECT FROM change_readers WHERE updated_at > clock_timestamp() - interval '10 s')";

/**
 * The database that `latchkey copy` writes to. Each batch of rows is one statement, which also notes how far the copy
 * is: so a copy that was interrupted anywhere can be continued. Throws `DatabaseRefused` for a database that must not be
 * written to, and the errors of the server and the connection.
 */
export class CopyTarget {
  readonly #engine: PgEngine;
  readonly #connection: PatientConnection;
  /** How far the copy is. */
  #position: Position = { copied_table: null, copied_through: null };

  constructor(url: string) {
    checkUrl(url, "LATCHKEY_COPY_TO");
    this.#engine = openPgEngine({ url, connectionsMax: 1 });
    this.#connection = new PatientConnection(this.#engine.servers);
  }

  /** The copy to continue; undefined where the database is empty. Writes nothing. */
  async inspect(): Promise<UnfinishedCopy | undefined> {
    const names = [...copiedTables.map(({ table }) => table), "unfinished_copy", "change_readers"];
    const { rows } = await this.#run(existingText, [names]);
    const existing = new Set(rows.map(({ name }) => name));
    if (existing.has("unfinished_copy")) {
      // Locked for a moment: the last batch of a process that was killed may still be under way in the server.
      const found = await this.#run("SELECT id, source, copied_table, copied_through FROM unfinished_copy FOR UPDATE");
      const [copy] = found.rows as unknown as UnfinishedCopy[];
      this.#position = copy ?? this.#position;
      if (copy !== undefined) return copy;
    }
    for (const { table } of copiedTables) {
      if (existing.has(table) && (await this.#is(`EXISTS (SELECT FROM ${table})`)))
        throw refused(`has rows in ${table} that are not from an unfinished copy: it must be empty`);
    }
    if (existing.has("change_readers") && (await this.#is(isServed)))
      throw refused("is served by a running process, or was a moment ago");
    return undefined;
  }

  async migrate(nowMs: number): Promise<void> {
    await migrateUp(this.#engine, nowMs, pgMigrations).catch(throwRefused);
  }

  /** Begins in an empty database, or in the place of the copy that is there. */
  async begin(id: string, source: string, replaced: UnfinishedCopy | undefined): Promise<void> {
    if (replaced !== undefined) {
      const tables = copiedTables.map(({ table }) => table).join(", ");
      await this.#transaction(async () => {
        const removed = await this.#run("DELETE FROM unfinished_copy WHERE id = $1", [replaced.id]);
        if (removed.rowCount !== 1) throw new Unavailable(movedOn);
        await this.#run(`TRUNCATE ${tables}`);
      });
    }
    this.#position = { copied_table: null, copied_through: null };
    const isEmpty = `NOT EXISTS (${findDataText(tableNames)})`;
    const begun = await this.#run(`INSERT INTO unfinished_copy (slot, id, source) SELECT 1, $1, $2 WHERE ${isEmpty}`, [
      id,
      source,
    ]);
    if (begun.rowCount !== 1) throw refused("has rows that are not from an unfinished copy: it must be empty");
  }

  /**
   * Adds the rows, which come in the order of their primary key, and notes that they are there. The note is locked first,
   * and nothing is added if it has changed: a batch of a process that was killed may have come in between.
   */
  async add(id: string, copied: CopiedTable, rows: readonly Record<string, unknown>[]): Promise<void> {
    const { table } = copied;
    const columns = Object.keys(rows[0] ?? {});
    const next: Position = { copied_table: table, copied_through: JSON.stringify(copiedKeyOf(copied, rows.at(-1))) };
    const positions = [this.#position, next].flatMap((position) => [position.copied_table, position.copied_through]);
    const { rowCount } = await this.#run(
      `WITH note AS MATERIALIZED (
        SELECT id FROM unfinished_copy
        WHERE id = $2 AND copied_table IS NOT DISTINCT FROM $3 AND copied_through IS NOT DISTINCT FROM $4 FOR UPDATE
      ), added AS (
        INSERT INTO ${table} (${columns.join(", ")}) SELECT ${columns.map((column) => `r.${column}`).join(", ")}
        FROM note, json_populate_recordset(NULL::${table}, $1::json) r
      )
      UPDATE unfinished_copy u SET copied_table = $5, copied_through = $6 FROM note WHERE u.id = note.id`,
      [JSON.stringify(rows), id, ...positions],
    );
    if (rowCount !== 1) throw new Unavailable(movedOn);
    this.#position = next;
  }

  async count({ table }: CopiedTable): Promise<number> {
    const { rows } = await this.#run(`SELECT count(*) AS n FROM ${table}`);
    return Number(rows[0]?.n);
  }

  /** From now on the database can be served. Remembered keys and positions of before are of no use to its processes. */
  async finish(id: string, hasImportedKeys: number): Promise<void> {
    // So that the first look-ups do not go by what the server knew of empty tables.
    await this.#run(`ANALYZE ${copiedTables.map(({ table }) => table).join(", ")}`);
    await this.#transaction(async () => {
      await this.#run("UPDATE change_feed SET epoch = CAST(random() AS text), has_imported_keys = $1", [
        hasImportedKeys,
      ]);
      const finished = await this.#run(`DELETE FROM unfinished_copy WHERE id = $1 AND NOT ${isServed}`, [id]);
      if (finished.rowCount !== 1) throw refused("was served by a running process before the copy was finished");
    });
  }

  async close(): Promise<void> {
    this.#connection.close();
    await this.#engine.close();
  }

  #run(text: string, values?: readonly unknown[]): Promise<PgReply> {
    return this.#connection.run(text, values).catch((error: unknown) => throwRefused(toStoreError(error)));
  }

  /** The errors of the work are already those that callers get. */
  #transaction(work: () => Promise<void>): Promise<void> {
    return this.#connection.transaction(work).catch((error: unknown) => {
      throw error instanceof DatabaseRefused ? error : orRefused(toStoreError(error));
    });
  }

  async #is(condition: string): Promise<boolean> {
    const { rows } = await this.#run(`SELECT ${condition} AS yes`);
    return rows[0]?.yes === true;
  }
}

function throwRefused(error: unknown): never {
  // Every table that is written to was empty when the copy began.
  throw error instanceof UniqueViolation ? refused("has rows that are not from this copy") : orRefused(error);
}

const movedOn = "another process has copied to this database meanwhile: run it again";

const existingText = "SELECT name FROM unnest($1::text[]) name WHERE to_regclass(name) IS NOT NULL";

function refused(why: string): DatabaseRefused {
  return new DatabaseRefused(`the database of LATCHKEY_COPY_TO ${why}`);
}
