import pg from "pg";
import { clientConfig, sessionSettings } from "./pg-session.ts";

export interface PgStatement {
  /** Prepared under this name, once per connection. */
  readonly name: string;
  readonly text: string;
  readonly values: readonly unknown[];
}

export interface PgReply {
  readonly rows: readonly Record<string, unknown>[];
  /** The server committed but stopped waiting for its synchronous standby: the commit may yet be lost. */
  readonly doubtful: boolean;
}

/** One connection, made when it is needed and thrown away when anything is wrong with it. One statement at a time. */
export class PgConnection {
  readonly #url: string;
  readonly #connectMs: number;
  #client: pg.Client | undefined;
  #doubtful = false;

  constructor(url: string, connectMs: number) {
    this.#url = url;
    this.#connectMs = connectMs;
  }

  /** Throws what the server or the connection said. After a time-out the statement may still be running. */
  async run(statement: PgStatement, timeoutMs: number): Promise<PgReply> {
    this.#client ??= await this.#connect();
    this.#doubtful = false;
    const { rows } = await this.#client.query({
      ...statement,
      values: [...statement.values],
      query_timeout: timeoutMs,
    } as pg.QueryConfig);
    return { rows, doubtful: this.#doubtful };
  }

  /** Cuts the connection. What it had under way may or may not happen. */
  discard(): void {
    const client = this.#client;
    this.#client = undefined;
    if (client !== undefined) cut(client);
  }

  async #connect(): Promise<pg.Client> {
    const client = new pg.Client(clientConfig(this.#url, this.#connectMs));
    // Without a listener the loss of an idle connection would end the process.
    client.on("error", () => {
      if (this.#client === client) this.discard();
    });
    client.on("notice", (notice) => {
      // "canceling wait for synchronous replication": node-postgres resolves the query all the same.
      if (notice.code === "01000") this.#doubtful = true;
    });
    try {
      await client.connect();
      await client.query({ text: sessionSettings, query_timeout: this.#connectMs } as pg.QueryConfig);
      return client;
    } catch (error) {
      cut(client);
      throw error;
    }
  }
}

/** Not `end()` alone, which waits for what is under way: a connection that hangs would keep us hanging. */
function cut(client: pg.Client): void {
  client.end().catch(() => {});
  (client as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy();
}
