import type { Ambient } from "../../ambient/ambient.ts";
import { systemClock } from "../../ambient/clock.ts";
import { Deadline } from "../../domain/deadlines.ts";
import { Unavailable } from "../../domain/unavailable.ts";
import type { ChangeFeed, FeedNews, FeedPosition } from "../change-feed.ts";
import { changesReadMax, type FeedRow, newsOf } from "../sql/sql-change-feed.ts";
import { settingsText } from "./guarded-statement.ts";
import { PgConnection, type PgReply, type PgStatement, preparedText } from "./pg-connection.ts";
import { UnsafeTransaction } from "./pg-error.ts";
import type { PgServers } from "./pg-servers.ts";

export interface PgChangeFeedOptions extends Pick<Ambient, "random"> {
  readonly servers: PgServers;
}

/** For heartbeat and read together. With two reads a second, a feed that cannot be read is noticed within two seconds. */
const readTimeoutMs = 1000;
const lockMs = 400;

/**
 * The feed of a database that other processes change too. Each read first commits a heartbeat in the reader's own row,
 * and then reads changes in a snapshot that sees it. A server that cannot commit it is not the ledger, or not any more.
 * One that does not have the heartbeat of a position has lost what it had confirmed. The feed has its own connection,
 * because news must come while the pool is busy.
 */
export class PgChangeFeed implements ChangeFeed {
  readonly #connection: PgConnection;
  readonly #newId: () => string;
  /** The name of its row, made with its first heartbeat. */
  #reader = "";
  /** The latest one whose commit was confirmed; 0 before the first. */
  #heartbeats = 0;
  /** Resolves when the read before has ended. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor({ servers, random }: PgChangeFeedOptions) {
    this.#connection = new PgConnection(servers);
    this.#newId = () => Buffer.from(random.bytes(12)).toString("base64url");
  }

  /**
   * One read at a time, because a connection runs one statement at a time: the notice that a commit was not confirmed
   * would otherwise count for another statement. And each position has a heartbeat of its own.
   */
  read(since: FeedPosition | undefined): Promise<FeedNews> {
    const news = this.#turn.then(() => this.#readInTurn(since));
    this.#turn = news.catch(() => {});
    return news;
  }

  close(): void {
    this.#connection.close();
  }

  async #readInTurn(since: FeedPosition | undefined): Promise<FeedNews> {
    // The real clock, because the connection waits with real timers.
    const deadline = new Deadline(systemClock, readTimeoutMs);
    const run = (statement: PgStatement) => this.#connection.run(statement, deadline);
    try {
      const transaction = await this.#beat(run);
      return await this.#readAfter(transaction, since, run);
    } catch (error) {
      // Another server may have become the primary, and a statement without a reply may still run on this connection.
      this.#connection.discard();
      throw error instanceof Unavailable ? error : new Unavailable("the change feed cannot be read", { cause: error });
    }
  }

  /** Answers its transaction. */
  async #beat(run: Run): Promise<number> {
    const next = this.#heartbeats > 0 ? await this.#commitHeartbeat(run, nextHeartbeat) : undefined;
    if (next !== undefined) return next;
    // The first one; or the server has lost what it had confirmed. Then the old row must stay as it is, so that no
    // process takes a position of before for one of this server.
    this.#reader = this.#newId();
    this.#heartbeats = 0;
    const first = await this.#commitHeartbeat(run, firstHeartbeat);
    if (first === undefined) throw new Unavailable("the change feed's heartbeat could not be stored");
    return first;
  }

  /** Undefined if the server does not have the latest confirmed heartbeat. */
  async #commitHeartbeat(run: Run, text: typeof nextHeartbeat): Promise<number | undefined> {
    const { rows, doubtful } = await run({ ...text, values: [this.#reader, this.#heartbeats] });
    const [row] = rows as unknown as readonly HeartbeatRow[];
    if (!row?.is_safe) throw new UnsafeTransaction();
    if (doubtful) throw new Unavailable("the standby has not confirmed the heartbeat");
    if (row.heartbeats === null) return undefined;
    this.#heartbeats = row.heartbeats;
    return row.transaction_id;
  }

  async #readAfter(transaction: number, since: FeedPosition | undefined, run: Run): Promise<FeedNews> {
    const { session = "", snapshot = noSnapshot } = since?.reported ?? {};
    const { reader = "", count = 0 } = since?.heartbeat ?? {};
    const values = [since?.transaction ?? null, session, snapshot, this.#reader, reader, count];
    const { rows } = await run({ ...readChanges, values });
    const feedRows = rows as unknown as readonly PgFeedRow[];
    const [first] = feedRows;
    // Behind a pooler this may be another server than the one that has committed the heartbeat.
    if (first === undefined || (first.heartbeats ?? 0) < this.#heartbeats)
      throw new Unavailable("the change feed was read on a server that does not have the latest heartbeat");
    const { position, ...news } = newsOf(feedRows, first.has_heartbeat ? since : undefined);
    return {
      ...news,
      position: {
        epoch: position.epoch,
        // Not beyond the heartbeat: a server that takes over has it, and gives only higher ids to new transactions.
        transaction: Math.min(position.transaction, transaction),
        heartbeat: { reader: this.#reader, count: this.#heartbeats },
        reported: { session: first.session, snapshot: first.snapshot },
      },
    };
  }
}

type Run = (statement: PgStatement) => Promise<PgReply>;

interface HeartbeatRow {
  readonly is_safe: boolean;
  readonly heartbeats: number | null;
  readonly transaction_id: number;
}

interface PgFeedRow extends FeedRow {
  readonly heartbeats: number | null;
  readonly has_heartbeat: boolean;
  readonly session: string;
  readonly snapshot: string;
}

/** A snapshot that has seen nothing. */
const noSnapshot = "1:1:";

/** `beaten`: the statement that stores a heartbeat where the settings are safe, and returns it. */
function heartbeatText(beaten: string) {
  return preparedText(`
WITH ${settingsText(lockMs)}, beaten AS (${beaten} RETURNING heartbeats)
SELECT is_safe, (SELECT heartbeats FROM beaten), pg_current_xact_id()::text::bigint AS transaction_id FROM settings`);
}

/** Commits the next heartbeat, if the latest confirmed one is there. $1 reader  $2 the latest confirmed one */
const nextHeartbeat = heartbeatText(`
  UPDATE change_readers SET heartbeats = heartbeats + 1, updated_at = clock_timestamp()
  WHERE id = $1 AND heartbeats >= $2::bigint AND (SELECT is_safe FROM settings)`);

/** Commits the first heartbeat of a new reader. $1 reader  $2 0 */
const firstHeartbeat = heartbeatText(`
  INSERT INTO change_readers (id, heartbeats, updated_at)
  SELECT $1::text, $2::bigint + 1, clock_timestamp() FROM settings WHERE is_safe`);

const session = "pg_backend_pid() || ' ' || pg_postmaster_start_time()";

/**
 * Reads the changes since a position, and where the feed stands: all in the snapshot of this one statement. Rows that
 * the same session has reported are left out. Another session may be on another server, where the ids of transactions that
 * were aborted here, or lost, can belong to others.
 * $1 the position's transaction, or null  $2 the session of its read  $3 the snapshot of its read  $4 this reader
 * $5 the reader of the position's heartbeat  $6 its number
 */
const readChanges = preparedText(`
SELECT f.epoch, f.tidied_before, f.has_imported_keys, pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS oldest_open,
  pg_current_snapshot()::text AS snapshot, ${session} AS session,
  (SELECT heartbeats FROM change_readers WHERE id = $4),
  EXISTS (SELECT FROM change_readers WHERE id = $5 AND heartbeats >= $6::bigint) AS has_heartbeat, c.kind, c.target_id, c.digests
FROM change_feed f LEFT JOIN changes c ON c.transaction_id >= $1::bigint
  AND NOT ($2::text = ${session} AND pg_visible_in_snapshot(c.transaction_id::text::xid8, $3::pg_snapshot))
LIMIT ${changesReadMax + 1}`);

/** Readers without a heartbeat for a day belong to processes that are gone. */
export const deleteIdleReadersText =
  "DELETE FROM change_readers WHERE updated_at < clock_timestamp() - interval '1 day'";
