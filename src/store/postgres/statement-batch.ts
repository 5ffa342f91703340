import pg from "pg";

/** Text and values of one statement. Values are texts, numbers, booleans or null. */
export interface BatchedStatement {
  readonly text: string;
  readonly values: readonly unknown[];
}

type Results = readonly Pick<pg.QueryResult, "rows" | "rowCount">[];

/** What of a connection of node-postgres is used here. */
interface Wire {
  readonly stream: { cork(): void; uncork(): void };
  parse(statement: { text: string }): void;
  bind(parameters: { values: (string | null)[] }): void;
  describe(portal: { type: "P"; name: "" }): void;
  execute(): void;
  sync(): void;
}

/**
 * Several statements in one message, so that they take one round trip. After one that fails the server skips all others, up to
 * the single Sync at the end; node-postgres would send one with each statement. The results are collected as those of one
 * query with several statements. Nothing is prepared under a name.
 */
export class StatementBatch extends pg.Query {
  readonly #statements: readonly BatchedStatement[];

  private constructor(statements: readonly BatchedStatement[], config: object) {
    super(config as pg.QueryConfig);
    this.#statements = statements;
  }

  /** One result for each statement. Rejects with the error of the first that fails. */
  static run(client: pg.Client, statements: readonly BatchedStatement[]): Promise<Results> {
    return new Promise((resolve, reject) => {
      const callback = (error: unknown, results: Results | Results[number]) => {
        if (error) reject(error);
        else resolve(Array.isArray(results) ? results : [results as Results[number]]);
      };
      client.query(new StatementBatch(statements, { text: "", callback }));
    });
  }

  /** Called by the client when it is this query's turn. */
  override submit = (connection: unknown): void => {
    const wire = connection as Wire;
    // All messages in one write.
    wire.stream.cork();
    for (const { text, values } of this.#statements) sendStatement(wire, text, values);
    wire.sync();
    wire.stream.uncork();
  };
}

function sendStatement(wire: Wire, text: string, values: readonly unknown[]): void {
  wire.parse({ text });
  wire.bind({ values: values.map((value) => (value === null || value === undefined ? null : String(value))) });
  wire.describe({ type: "P", name: "" });
  wire.execute();
}
