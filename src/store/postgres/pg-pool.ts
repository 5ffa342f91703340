import pg from "pg";
import { systemClock } from "../../ambient/clock.ts";
import { Unavailable } from "../../domain/unavailable.ts";
import { isConnectionUsable, isNoRoom, isUnconfirmedCommit, toStoreError } from "./pg-error.ts";
import { beginSafely, clientConfig, StartupSettings } from "./pg-session.ts";
import { withTimeout } from "./with-timeout.ts";

export interface PgPoolOptions {
  readonly url: string;
  readonly connectionsMax: number;
}

export interface Query {
  readonly text: string;
  readonly values: readonly unknown[];
}

/** How long a query may wait for a connection, and how long it may then take. */
export interface Timeouts {
  readonly waitMs: number;
  readonly queryMs: number;
}

/** Most queries that wait for a connection; one more is refused. Verifications wait before the pool, not in it. */
const queriesQueuedMax = 1000;
/** How long the pool itself tries to connect, for the callers with the longest timeout. */
const connectMs = 2000;
/** After the server had no room for another connection, the pool opens none for this long. */
const noRoomMs = 1000;
/** The pause between two attempts to connect if there is no open connection to wait for. */
const pauseMs = 50;

/** Connections for everything except the ledgers. A query that takes too long loses its connection. */
export class PgPool {
  readonly #pool: pg.Pool;
  /** Connections whose latest commit the synchronous standby has not confirmed. */
  readonly #doubtful = new WeakSet<pg.ClientBase>();

  readonly #connectionsMax: number;
  readonly #startup = new StartupSettings();
  #open = 0;
  /** The server's error when it had no room for another connection. While set, the pool opens no new ones. */
  #noRoom: { error: unknown; timer: NodeJS.Timeout } | undefined;

  constructor({ url, connectionsMax }: PgPoolOptions) {
    const startup = this.#startup;
    this.#connectionsMax = connectionsMax;
    this.#pool = new pg.Pool({
      ...clientConfig(url, connectMs),
      max: connectionsMax,
      Client: class extends pg.Client {
        constructor(config?: pg.ClientConfig) {
          super({ ...config, options: startup.options });
        }
      },
    });
    // Without these listeners a server that goes away would end the process.
    this.#pool.on("error", () => {});
    this.#pool.on("remove", () => this.#open--);
    this.#pool.on("connect", (client) => {
      this.#open++;
      client.on("error", () => {});
      client.on("notice", (notice) => {
        if (isUnconfirmedCommit(notice)) this.#doubtful.add(client);
      });
    });
  }

  /** Throws `UniqueViolation` or `Unavailable`. */
  query(query: Query, timeouts: Timeouts): Promise<pg.QueryResult> {
    return this.#withClient(timeouts, (client) => run(client, query, timeouts));
  }

  /** Runs the queries as one transaction. After `Unavailable` it may still have been committed. */
  transaction(queries: readonly Query[], timeouts: Timeouts): Promise<pg.QueryResult[]> {
    return this.#withClient(timeouts, async (client) => {
      const results: pg.QueryResult[] = [];
      try {
        await run(client, { text: beginSafely, values: [] }, timeouts);
        for (const query of queries) results.push(await run(client, query, timeouts));
        await run(client, { text: "COMMIT", values: [] }, timeouts);
        return results;
      } catch (error) {
        if (isConnectionUsable(error)) await run(client, { text: "ROLLBACK", values: [] }, timeouts);
        throw error;
      }
    });
  }

  close(): Promise<void> {
    clearTimeout(this.#noRoom?.timer);
    return this.#pool.end();
  }

  async #withClient<Result>({ waitMs }: Timeouts, use: (client: pg.PoolClient) => Promise<Result>): Promise<Result> {
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

  /** Uses the real clock, because it waits with real timers. */
  async #connect(waitMs: number): Promise<pg.PoolClient> {
    const untilMs = systemClock.monotonicMs() + waitMs;
    for (;;) {
      const connecting = this.#pool.connect();
      try {
        return await withTimeout(connecting, Math.max(1, untilMs - systemClock.monotonicMs()), "no connection in time");
      } catch (error) {
        // If the connection arrives later, the next caller gets it.
        connecting.then(
          (client) => client.release(),
          () => {},
        );
        if (this.#startup.wereRefused(error)) continue;
        if (isNoRoom(error)) this.#makeDo(error);
        if (!isNoRoom(error) || systemClock.monotonicMs() + pauseMs >= untilMs) throw this.#noRoom?.error ?? error;
        await new Promise((resolve) => setTimeout(resolve, this.#open > 0 ? 0 : pauseMs));
      }
    }
  }

  /** There is no room for another connection: for a while, queries wait for the open ones. */
  #makeDo(error: unknown): void {
    clearTimeout(this.#noRoom?.timer);
    this.#pool.options.max = Math.max(1, this.#open);
    const timer = setTimeout(() => {
      this.#pool.options.max = this.#connectionsMax;
      this.#noRoom = undefined;
    }, noRoomMs).unref();
    this.#noRoom = { error, timer };
  }
}

/** A query without a reply in time loses its connection: it may still be running, and no other query may wait behind it. */
function run(client: pg.PoolClient, { text, values }: Query, { queryMs }: Timeouts): Promise<pg.QueryResult> {
  return withTimeout(client.query({ text, values: [...values] }), queryMs, "no reply in time");
}
