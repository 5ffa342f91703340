import pg from "pg";
import { parserOf } from "./pg-session.ts";

/** Text and values of one statement. Values are texts, numbers, booleans or null. */
export interface BatchedStatement {
  readonly text: string;
  readonly values: readonly unknown[];
}

type Row = Readonly<Record<string, unknown>>;

export interface BatchedResult {
  readonly rows: readonly Row[];
  readonly rowCount: number;
}

interface Columns {
  readonly names: readonly string[];
  readonly parsers: readonly ((text: string) => unknown)[];
}

/**
 * The columns of each statement's rows, by its text, which names them. They are asked for once: to ask, answer and read them
 * each time took a tenth of a change.
 */
const knownColumns = new Map<string, Columns>();
const knownColumnsMax = 500;
const noColumns: Columns = { names: [], parsers: [] };

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
 * the single Sync at the end; node-postgres would send one with each statement. Nothing is prepared under a name.
 */
export class StatementBatch extends pg.Query {
  readonly #statements: readonly BatchedStatement[];
  /** The columns of each statement that are known. The others are asked for. */
  #columns: (Columns | undefined)[] = [];
  readonly #results: BatchedResult[] = [];
  /** The rows of the statement that is being answered: the one after those with results. */
  #rows: Row[] = [];

  private constructor(statements: readonly BatchedStatement[], config: object) {
    super(config as pg.QueryConfig);
    this.#statements = statements;
  }

  /** One result for each statement. Rejects with the error of the first that fails. */
  static run(client: pg.Client, statements: readonly BatchedStatement[]): Promise<readonly BatchedResult[]> {
    return new Promise((resolve, reject) => {
      const callback = (error: unknown) => (error ? reject(error) : resolve(batch.#results));
      const batch: StatementBatch = new StatementBatch(statements, { text: "", callback });
      client.query(batch);
    });
  }

  /** Called by the client when it is this query's turn. */
  override submit = (connection: unknown): void => {
    const wire = connection as Wire;
    // All messages in one write.
    wire.stream.cork();
    this.#columns = this.#statements.map(({ text }) => knownColumns.get(text));
    this.#statements.forEach((statement, i) => {
      sendStatement(wire, statement, this.#columns[i] === undefined);
    });
    wire.sync();
    wire.stream.uncork();
  };

  /** Called by the client, before the rows of a statement whose columns were asked for. */
  handleRowDescription({ fields }: { readonly fields: readonly pg.FieldDef[] }): void {
    this.#columns[this.#results.length] = {
      names: fields.map(({ name }) => name),
      parsers: fields.map(({ dataTypeID }) => parserOf(dataTypeID)),
    };
  }

  /** Called by the client, for each row. */
  handleDataRow({ fields }: { readonly fields: readonly (string | null)[] }): void {
    const { names, parsers } = this.#columns[this.#results.length] ?? noColumns;
    const row: Record<string, unknown> = {};
    fields.forEach((field, i) => {
      row[names[i] as string] = field === null ? null : parsers[i]?.(field);
    });
    this.#rows.push(row);
  }

  /** Called by the client, after the rows of a statement. The tag ends with their number, such as `INSERT 0 1`. */
  handleCommandComplete({ text: tag }: { readonly text: string }): void {
    const { text } = this.#statements[this.#results.length] as BatchedStatement;
    if (!knownColumns.has(text)) {
      if (knownColumns.size === knownColumnsMax) knownColumns.clear();
      knownColumns.set(text, this.#columns[this.#results.length] ?? noColumns);
    }
    this.#results.push({ rows: this.#rows, rowCount: Number(/\d+$/.exec(tag)?.[0] ?? 0) });
    this.#rows = [];
  }
}

function sendStatement(wire: Wire, { text, values }: BatchedStatement, asksForColumns: boolean): void {
  wire.parse({ text });
  wire.bind({ values: values.map((value) => (value === null || value === undefined ? null : String(value))) });
  if (asksForColumns) wire.describe({ type: "P", name: "" });
  wire.execute();
}
