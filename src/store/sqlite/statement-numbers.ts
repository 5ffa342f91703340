import type { SqlResult } from "../sql/sql-engine.ts";
import type { NumberedResult, NumberedStatement, Statement } from "./writer-protocol.ts";

/** Above this number the writer thread drops them all: each prepared statement takes some kilobytes. */
const statementsMax = 200;

/**
 * Gives each text of a statement a number, so that a statement that was run before crosses to the writer thread without its
 * text, and its rows come back without the names of their columns. Copying both took a tenth of the time of a change.
 */
export class StatementNumbers {
  readonly #known = new Map<string, { readonly number: number; columns: readonly string[] | undefined }>();
  #next = 0;

  /** To be called while no statement is under way. Answers whether the writer thread must forget all numbers. */
  clearIfMany(): boolean {
    if (this.#known.size < statementsMax) return false;
    this.#known.clear();
    return true;
  }

  /** The text is sent until the writer thread has answered the columns: a statement that failed may not have been prepared. */
  toNumbered({ sql, parameters }: Statement): NumberedStatement {
    let known = this.#known.get(sql);
    if (known === undefined) {
      known = { number: this.#next++, columns: undefined };
      this.#known.set(sql, known);
    }
    return known.columns === undefined ? [known.number, parameters, sql] : [known.number, parameters];
  }

  /** One result for each statement, in order. */
  toResults(statements: readonly Statement[], results: readonly NumberedResult[]): SqlResult[] {
    if (results.length !== statements.length) throw new Error("the writer left out a statement");
    return results.map((result, i) => this.#toResult(statements[i] as Statement, result));
  }

  #toResult({ sql }: Statement, [rows, changes, columns]: NumberedResult): SqlResult {
    const known = this.#known.get(sql);
    const names = known?.columns ?? columns;
    if (known === undefined || names === undefined)
      throw new Error("the writer answered a statement that was not sent");
    known.columns = names;
    return { rows: rows.map((values) => toRow(names, values)), changes };
  }
}

function toRow(names: readonly string[], values: readonly unknown[]): Record<string, unknown> {
  const row: Record<string, unknown> = {};
  for (let i = 0; i < names.length; i++) row[names[i] as string] = values[i];
  return row;
}
