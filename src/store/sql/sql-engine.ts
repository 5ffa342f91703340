import type { IndexDefinition } from "./migrations.ts";
import type { Rows } from "./plan.ts";
import type { Sql } from "./sql.ts";

/** What a statement has answered. */
export interface SqlResult extends Rows {
  /** Rows that it has changed, if it answers none. */
  readonly changes: number;
}

/** What the shared queries need from a database. */
export interface SqlEngine {
  /** Runs a SELECT by itself, which sees the effect of changes that were answered before. Throws `Unavailable`. */
  read<Row>(query: Sql): Promise<readonly Row[]>;

  /**
   * Runs the queries in order as one transaction and answers their results after COMMIT. There are no interactive
   * transactions: the embedded engine has one writer, which must never wait for the event loop in the middle of one.
   * Throws `UniqueViolation`, `CheckViolation` or `Unavailable`; then nothing has been stored, or in the last case it may be
   * unknown.
   */
  atomically(queries: readonly Sql[]): Promise<readonly SqlResult[]>;

  /**
   * Runs a query that may read thousands of rows, and answers its rows. It holds up no look-up: few run at a time, and on the
   * embedded engine in a thread of their own. It sees the effect of changes that were answered before. Throws
   * `Unavailable`, also if too many wait.
   */
  scan(query: Sql): Promise<readonly unknown[]>;

  /**
   * Runs the statement that claims a migration, and then its statements, as one transaction like `atomically`. It waits at
   * the claim for other processes, and no time-out of a request applies.
   */
  migrate(claim: Sql, statements: readonly Sql[]): Promise<void>;

  /**
   * Resolves when the index exists and is complete, also if it was there before or another process has built it. If it is
   * interrupted it can be called again. Where other processes use the tables, they can read and write meanwhile.
   * Throws `Unavailable`.
   */
  buildIndex(index: IndexDefinition): Promise<void>;

  /** In SQL: a SELECT of the names of all tables that statements find. */
  readonly tablesThere: Sql;

  /** In SQL: the end of CREATE TABLE for a table whose rows are kept in its primary key, where the engine can do that. */
  readonly inPrimaryKey: Sql;

  /** In SQL, at the end of a SELECT: until the transaction has ended, nothing deletes the rows. They can be changed. */
  readonly forKeyShare: Sql;

  /** In SQL, at the end of a SELECT: nothing changes or deletes the rows, nor adds rows that refer to them. */
  readonly forUpdate: Sql;

  /** The statement, for `atomically`. It may wait seconds for rows that are locked, where any other gives up sooner. */
  inTurn(statement: Sql): readonly Sql[];

  /**
   * In SQL: whether the column has the value. The index for the order of the rows has to begin with the column all the same:
   * the engine must not leave it out of the order because it is constant (see `pages.ts`).
   */
  hasValue(column: string, value: string): Sql;

  /**
   * In SQL: whether the column has one of the values that a query finds. The engine must look them up in the column's index,
   * however many it believes there are.
   */
  isAnyOf(column: string, query: Sql): Sql;

  /** In SQL: whether the column has a JSON array of which every text is one of these. */
  isListOf(column: string, texts: readonly string[]): Sql;

  /**
   * In SQL: a SELECT of the subjects of all windows of the keys whose ids another SELECT finds. It reads a range of the index
   * for each key, and never the whole table.
   */
  windowsOfKeys(ids: Sql): Sql;

  /** In SQL: the id of the transaction that runs the statement. */
  readonly thisTransaction: Sql;
  /**
   * In SQL: the oldest transaction that has not ended, as the statement sees it. What it sees of transactions below this
   * one is all that they have done.
   */
  readonly oldestOpenTransaction: Sql;

  /**
   * In SQL, for a WITH clause that begins a statement of `atomically`: the step `refilled`. It has one row if there is
   * such a counter: `subject`, `available` with every refill that is due, `through_ms`, the latest boundary that was applied, and
   * what was `spent`. The counter's row is locked, and the clock that refills go by is read after that.
   */
  refilledCounter(subject: string): Sql;

  /** In SQL, for a statement of `atomically`: the hour by the clock that refills go by, counted from 1970 on. */
  ledgerHour(): Sql;

  /** The clock that refills go by. */
  ledgerNowMs(): Promise<number>;
}

/** A row with that primary or unique key already exists. */
export class UniqueViolation extends Error {
  override readonly name = "UniqueViolation";
}

/** A value is outside the bounds of its column. */
export class CheckViolation extends Error {
  override readonly name = "CheckViolation";
  /** The name of the constraint. */
  readonly constraint: string;

  constructor(constraint: string, options?: ErrorOptions) {
    super(`the constraint ${constraint} was violated`, options);
    this.constraint = constraint;
  }
}
