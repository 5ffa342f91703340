import pg from "pg";
import { isConnectionUsable, toStoreError } from "./pg-error.ts";
import { clientConfig, sessionSettings } from "./pg-session.ts";

export interface PgPoolOptions {
  readonly url: string;
  readonly connectionsMax: number;
}

export interface Query {
  readonly text: string;
  readonly values: readonly unknown[];
}

/** How long a query may wait for a connection, and how long it may then take. */
export interface Patience {
  readonly waitMs: number;
  readonly queryMs: number;
}

/** How long the pool itself tries to get a connection, for the most patient. */
const connectMs = 2000;

/** Connections for everything but the usage ledger. A query that takes too long costs its connection, not its caller. */
export class PgPool {
  readonly #pool: pg.Pool;

  constructor({ url, connectionsMax }: PgPoolOptions) {
    this.#pool = new pg.Pool({ ...clientConfig(url, connectMs), max: connectionsMax });
    // Without these listeners a server that goes away would end the process.
    this.#pool.on("error", () => {});
    this.#pool.on("connect", (client) => {
      client.on("error", () => {});
      client.query(sessionSettings).catch(() => {});
    });
  }

  /** Throws `UniqueViolation` or `Unavailable`. */
  query(query: Query, patience: Patience): Promise<pg.QueryResult> {
    return this.#withClient(patience, (client) => client.query(withTimeout(query, patience)));
  }

  /** Runs the queries as one transaction. `Unavailable` can mean that it was committed all the same. */
  transaction(queries: readonly Query[], patience: Patience): Promise<pg.QueryResult[]> {
    return this.#withClient(patience, async (client) => {
      const results: pg.QueryResult[] = [];
      await client.query(withTimeout({ text: "BEGIN", values: [] }, patience));
      try {
        for (const query of queries) results.push(await client.query(withTimeout(query, patience)));
        await client.query(withTimeout({ text: "COMMIT", values: [] }, patience));
        return results;
      } catch (error) {
        if (isConnectionUsable(error)) await client.query(withTimeout({ text: "ROLLBACK", values: [] }, patience));
        throw error;
      }
    });
  }

  close(): Promise<void> {
    return this.#pool.end();
  }

  async #withClient<Result>({ waitMs }: Patience, use: (client: pg.PoolClient) => Promise<Result>): Promise<Result> {
    let client: pg.PoolClient | undefined;
    try {
      client = await this.#connect(waitMs);
      const result = await use(client);
      client.release();
      return result;
    } catch (error) {
      client?.release(!isConnectionUsable(error));
      throw toStoreError(error);
    }
  }

  #connect(waitMs: number): Promise<pg.PoolClient> {
    return new Promise((resolve, reject) => {
      let waiting = true;
      const giveUp = setTimeout(() => {
        waiting = false;
        reject(new Error("no connection in time"));
      }, waitMs);
      this.#pool.connect().then(
        (client) => {
          clearTimeout(giveUp);
          // Nobody waits for it any more: it goes to the next.
          if (waiting) resolve(client);
          else client.release();
        },
        (error: unknown) => {
          clearTimeout(giveUp);
          reject(error);
        },
      );
    });
  }
}

function withTimeout({ text, values }: Query, { queryMs }: Patience): pg.QueryConfig {
  return { text, values: [...values], query_timeout: queryMs } as pg.QueryConfig;
}
