import pg from "pg";
import { Unavailable } from "../../domain/unavailable.ts";
import { inTime } from "./in-time.ts";
import { isConnectionUsable, isUnconfirmedCommit, toStoreError } from "./pg-error.ts";
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

/** Queries that may wait for a connection; one more is refused. Verifications wait in front of the pool, not in it. */
const queriesQueuedMax = 1000;
/** How long the pool itself tries to get a connection, for the most patient. */
const connectMs = 2000;

/** Connections for everything but the ledgers. A query that takes too long costs its connection, not its caller. */
export class PgPool {
  readonly #pool: pg.Pool;
  /** Connections whose latest commit the synchronous standby has not confirmed. */
  readonly #doubtful = new WeakSet<pg.ClientBase>();

  constructor({ url, connectionsMax }: PgPoolOptions) {
    this.#pool = new pg.Pool({
      ...clientConfig(url, connectMs),
      max: connectionsMax,
      // Awaited: nobody gets a connection on which the server's own defaults hold.
      onConnect: (client) => client.query({ text: sessionSettings, query_timeout: connectMs } as pg.QueryConfig),
    });
    // Without these listeners a server that goes away would end the process.
    this.#pool.on("error", () => {});
    this.#pool.on("connect", (client) => {
      client.on("error", () => {});
      client.on("notice", (notice) => {
        if (isUnconfirmedCommit(notice)) this.#doubtful.add(client);
      });
    });
  }

  /** Throws `UniqueViolation` or `Unavailable`. */
  query(query: Query, patience: Patience): Promise<pg.QueryResult> {
    return this.#withClient(patience, (client) => run(client, query, patience));
  }

  /** Runs the queries as one transaction. `Unavailable` can mean that it was committed all the same. */
  transaction(queries: readonly Query[], patience: Patience): Promise<pg.QueryResult[]> {
    return this.#withClient(patience, async (client) => {
      const results: pg.QueryResult[] = [];
      await run(client, { text: "BEGIN", values: [] }, patience);
      try {
        for (const query of queries) results.push(await run(client, query, patience));
        await run(client, { text: "COMMIT", values: [] }, patience);
        return results;
      } catch (error) {
        if (isConnectionUsable(error)) await run(client, { text: "ROLLBACK", values: [] }, patience);
        throw error;
      }
    });
  }

  close(): Promise<void> {
    return this.#pool.end();
  }

  async #withClient<Result>({ waitMs }: Patience, use: (client: pg.PoolClient) => Promise<Result>): Promise<Result> {
    if (this.#pool.waitingCount >= queriesQueuedMax) throw new Unavailable("too many queries wait for a connection");
    let client: pg.PoolClient | undefined;
    try {
      client = await this.#connect(waitMs);
      const result = await use(client);
      if (this.#doubtful.delete(client)) throw new Error("the standby has not confirmed the commit");
      client.release();
      return result;
    } catch (error) {
      client?.release(!isConnectionUsable(error));
      throw toStoreError(error);
    }
  }

  async #connect(waitMs: number): Promise<pg.PoolClient> {
    const connecting = this.#pool.connect();
    try {
      return await inTime(connecting, waitMs, "no connection in time");
    } catch (error) {
      // Nobody waits for it any more: when it comes it goes to the next.
      connecting.then(
        (client) => client.release(),
        () => {},
      );
      throw error;
    }
  }
}

/** A query that gets no reply in time costs its connection: whatever it still does, nobody may wait behind it. */
function run(client: pg.PoolClient, { text, values }: Query, { queryMs }: Patience): Promise<pg.QueryResult> {
  return inTime(client.query({ text, values: [...values] }), queryMs, "no reply in time");
}
