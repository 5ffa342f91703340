import pg from "pg";

type TextRow = (string | null)[];

/** Keeps rows as they come. node-postgres would make another array of each, and call a parser for each column. */
class TextQuery extends pg.Query {
  #rows: TextRow[] = [];

  /** Called by the client, before the rows. The names of the columns are not needed. */
  handleRowDescription(): void {}

  /** Called by the client, for each row. */
  handleDataRow({ fields }: { readonly fields: TextRow }): void {
    this.#rows.push(fields);
  }

  /** Once: the client may remember the query for longer than the rows are needed. */
  takeRows(): TextRow[] {
    const rows = this.#rows;
    this.#rows = [];
    return rows;
  }
}

/** Rows as arrays of their columns, each as the server's text. */
export function queryText(
  client: pg.Client,
  config: pg.QueryConfig,
): Promise<{ readonly rows: readonly Record<string, unknown>[]; readonly rowCount: number }> {
  return new Promise((resolve, reject) => {
    const callback = (error: unknown) => {
      const rows = query.takeRows();
      if (error) reject(error);
      else resolve({ rows: rows as unknown as readonly Record<string, unknown>[], rowCount: rows.length });
    };
    const query: TextQuery = new TextQuery({ ...config, callback } as pg.QueryConfig);
    client.query(query);
  });
}
