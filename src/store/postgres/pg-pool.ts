import { systemClock } from "../../ambient/clock.ts";
import { whenPassed } from "../../ambient/with-timeout.ts";
import { Deadline } from "../../domain/deadlines.ts";
import { Unavailable } from "../../domain/unavailable.ts";
import { connectionLost, PgConnection, type PgReply, type PgSession, type PgStatement } from "./pg-connection.ts";
import { isConnectionUsable, isNoRoom, sqlStateOf, toStoreError } from "./pg-error.ts";
import type { PgServers } from "./pg-servers.ts";
import { beginSafely } from "./pg-session.ts";
import type { RoundTrip } from "./round-trip.ts";

export interface PgPoolOptions {
  readonly servers: PgServers;
  readonly connectionsMax: number;
  readonly roundTrip?: RoundTrip | undefined;
  /** Replaces the time after which idle connections are closed, in tests. */
  readonly idleMs?: number | undefined;
}

/** How long a query may wait for a connection, and how long it may take. What it does not wait it may take longer. */
export interface Timeouts {
  readonly waitMs: number;
  readonly queryMs: number;
}

/** Most queries that wait for a connection; one more is refused. Verifications wait before the pool, not in it. */
const queriesQueuedMax = 1000;
/** Connections that stay open when they are idle: a new one takes several round trips, longer than a look-up may wait. */
const keptOpen = 4;
/** Lost ones are opened again after this pause, so that the ledgers come first where there is little room. */
const reopenAfterMs = 250;
/** Connections that other queries leave to look-ups. Over a distance each of them holds its connection for long. */
export const keptForLookups = 3;
/** From this round trip on. A database that is nearer has answered a query before a look-up misses its connection. */
const farMs = 10;
/** Round trips that opening a connection takes, with TLS and a password, and some to spare. */
const openRoundTrips = 10;
/** Other connections are closed after they were idle for this long. */
const defaultIdleMs = 10_000;
/** After the server had no room for another connection, the pool opens none for this long. */
const noRoomMs = 1000;
/** The pause between two attempts to connect if there is no open connection to wait for. */
const pauseMs = 50;

/**
 * Connections for everything except the ledgers. A query takes the first connection that is free, whether it was opened for
 * it or for another one. A query that takes too long loses its connection.
 */
export class PgPool {
  readonly #connections: readonly PgConnection[];
  /** Open and not in use, the one used longest ago first: so each is used now and then, and a dead one is found. */
  readonly #free: PgConnection[] = [];
  readonly #waiting: Readonly<Record<Kind, Waiter[]>> = { lookups: [], others: [] };
  readonly #sweeping: NodeJS.Timeout;
  readonly #roundTrip: RoundTrip | undefined;
  /** How many connections stay open: none at first, and fewer than intended where the server has no room for them. */
  #keptMax = 0;
  readonly #inUse = new Set<PgConnection>();
  /** How many of those in use are not used by look-ups. */
  #others = 0;
  /** The fewest connections that were free since the last sweep. */
  #leastFree = 0;
  /** Set for a while after the server had no room for another connection. While set, the pool opens no new ones. */
  #noRoom: NodeJS.Timeout | undefined;
  /** The server's error then, and until the next attempt has ended. */
  #noRoomError: unknown;
  #onIdle: (() => void) | undefined;
  #closed = false;

  constructor({ servers, connectionsMax, roundTrip, idleMs = defaultIdleMs }: PgPoolOptions) {
    this.#roundTrip = roundTrip;
    this.#connections = Array.from({ length: connectionsMax }, (_, i) => {
      const connection: PgConnection = new PgConnection(servers, {
        keepOpen: () => (i < this.#keptMax ? { afterMs: reopenAfterMs } : undefined),
        roundTrip,
        onOpen: () => this.#onOpen(connection),
        onOpenFailed: (error) => this.#onOpenFailed(error),
        onLost: () => this.#remove(connection),
      });
      return connection;
    });
    this.#sweeping = setInterval(() => this.#closeIdle(), idleMs).unref();
  }

  /** For statements that only read: they may be sent a second time. Throws `UniqueViolation` or `Unavailable`. */
  async query(statement: PgStatement, timeouts: Timeouts, kind: Kind = "others"): Promise<PgReply> {
    const waitMs = timeouts.waitMs + this.#openMs(kind);
    const deadline = new Deadline(systemClock, waitMs + timeouts.queryMs);
    for (let attempts = 1; ; attempts++) {
      try {
        const waitLeftMs = Math.min(waitMs, deadline.leftMs);
        return await this.#withSession(kind, waitLeftMs, (session) => session.run(statement, deadline));
      } catch (error) {
        // If the server or a pooler closed the connection just then, another one can answer. All of them may be closed.
        if (!wasClosed(error) || attempts > this.#connections.length) throw toStoreError(error);
      }
    }
  }

  /** Runs the statements as one transaction, in one round trip. After `Unavailable` it may still have been committed. */
  async transaction(statements: readonly PgStatement[], { waitMs, queryMs }: Timeouts): Promise<PgReply[]> {
    const work = async (session: PgSession) => {
      try {
        const all = [...beginSafely, ...statements, commit];
        const replies = await session.runAll(all, new Deadline(systemClock, queryMs));
        if (replies.some(({ doubtful }) => doubtful)) throw new Error("the standby has not confirmed the commit");
        return replies.slice(beginSafely.length, -1);
      } catch (error) {
        if (isConnectionUsable(error)) await session.run(rollback, new Deadline(systemClock, queryMs));
        throw error;
      }
    };
    return this.#withSession("others", waitMs + this.#openMs("others"), work).catch((error: unknown) => {
      throw toStoreError(error);
    });
  }

  /** How much longer a query may wait because a connection has to be opened for it. Look-ups have some that stay open. */
  #openMs(kind: Kind): number {
    return kind === "lookups" ? 0 : (this.#roundTrip?.ms ?? 0) * openRoundTrips;
  }

  /** From now on some connections stay open. They are opened in the background. */
  keepOpen(): void {
    this.#keptMax = keptOpen;
    for (const connection of this.#connections.slice(0, keptOpen)) connection.ready().catch(() => {});
  }

  /** Resolves when all queries under way are answered and the connections are closed. */
  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#sweeping);
    clearTimeout(this.#noRoom);
    this.#rejectWaiting(new Unavailable("the store is closed"));
    if (this.#inUse.size > 0) {
      await new Promise<void>((resolve) => {
        this.#onIdle = resolve;
      });
    }
    for (const connection of this.#connections) connection.close();
  }

  async #withSession<Result>(
    kind: Kind,
    waitMs: number,
    use: (session: PgSession) => Promise<Result>,
  ): Promise<Result> {
    const connection = await this.#take(kind, waitMs);
    const session = connection.session();
    try {
      return await use(session);
    } catch (error) {
      if (!isConnectionUsable(error)) session.discard();
      throw error;
    } finally {
      this.#release(connection, kind);
    }
  }

  #release(connection: PgConnection, kind: Kind): void {
    this.#inUse.delete(connection);
    if (kind === "others") this.#others--;
    // It may be lost, and may already be open again.
    if (connection.isReady) this.#offer(connection);
    if (this.#inUse.size === 0) this.#onIdle?.();
  }

  #take(kind: Kind, waitMs: number): Promise<PgConnection> {
    if (this.#closed) return Promise.reject(new Unavailable("the store is closed", { nothingDone: true }));
    const queue = this.#waiting[kind];
    if (queue.length >= queriesQueuedMax)
      return Promise.reject(new Unavailable("too many queries wait for a connection", { nothingDone: true }));
    return new Promise((resolve, reject) => {
      const cancel = whenPassed(new Deadline(systemClock, waitMs), () => {
        queue.splice(queue.indexOf(waiter), 1);
        reject(this.#noRoomError ?? new Error("no connection in time"));
      });
      const waiter: Waiter = { resolve, reject, cancel };
      queue.push(waiter);
      this.#serve();
      if (queue.includes(waiter)) this.#openMore();
    });
  }

  #onOpen(connection: PgConnection): void {
    this.#noRoomError = undefined;
    this.#offer(connection);
  }

  /** The connection is free: it was opened, or its query is done. */
  #offer(connection: PgConnection): void {
    // Lost by a caller and already open again: it is offered when that caller releases it.
    if (this.#closed || this.#inUse.has(connection)) return;
    this.#free.push(connection);
    this.#serve();
  }

  #remove(connection: PgConnection): void {
    const at = this.#free.indexOf(connection);
    if (at >= 0) this.#free.splice(at, 1);
  }

  #serve(): void {
    for (let kind = this.#nextKind(); kind !== undefined; kind = this.#nextKind()) {
      const { cancel, resolve } = this.#waiting[kind].shift() as Waiter;
      const connection = this.#free.shift() as PgConnection;
      cancel();
      this.#inUse.add(connection);
      if (kind === "others") this.#others++;
      resolve(connection);
    }
    this.#leastFree = Math.min(this.#leastFree, this.#free.length);
  }

  /** Which kind of query gets the next free connection. */
  #nextKind(): Kind | undefined {
    if (this.#free.length === 0) return undefined;
    if (this.#waiting.lookups.length > 0) return "lookups";
    if (this.#waiting.others.length === 0) return undefined;
    const open = this.#free.length + this.#inUse.size;
    const isFar = (this.#roundTrip?.ms ?? 0) > farMs;
    return this.#others < open - (isFar ? Math.min(keptForLookups, open - 1) : 0) ? "others" : undefined;
  }

  /** Opens as many connections as there are queries that wait. */
  #openMore(): void {
    if (this.#noRoom !== undefined || this.#closed) return;
    const waiting = this.#waiting.lookups.length + this.#waiting.others.length;
    let missing = waiting - this.#connections.filter(({ isConnecting }) => isConnecting).length;
    for (const connection of this.#connections) {
      if (missing <= 0) return;
      if (connection.isReady || connection.isConnecting) continue;
      missing--;
      connection.ready().catch(() => {});
    }
  }

  #onOpenFailed(error: unknown): void {
    if (this.#closed) return;
    const hasOpen = this.#free.length + this.#inUse.size > 0;
    if (isNoRoom(error)) {
      this.#keptMax = Math.min(this.#keptMax, Math.max(1, this.#free.length + this.#inUse.size));
      clearTimeout(this.#noRoom);
      this.#noRoomError = error;
      const retry = () => {
        this.#noRoom = undefined;
        this.#openMore();
        if (!this.#isConnecting) this.#noRoomError = undefined;
      };
      // For a while, queries wait for the open connections. If there is none, another attempt is all that helps.
      this.#noRoom = setTimeout(retry, hasOpen ? noRoomMs : pauseMs).unref();
      return;
    }
    this.#noRoomError = undefined;
    // Those that wait for an open connection may still get it.
    if (!hasOpen && !this.#isConnecting) this.#rejectWaiting(error);
    setTimeout(() => this.#openMore(), pauseMs).unref();
  }

  get #isConnecting(): boolean {
    return this.#connections.some(({ isConnecting }) => isConnecting);
  }

  #rejectWaiting(error: unknown): void {
    for (const queue of Object.values(this.#waiting)) {
      for (const { cancel, reject } of queue.splice(0)) {
        cancel();
        reject(error);
      }
    }
  }

  #closeIdle(): void {
    const open = this.#connections.filter(({ isReady }) => isReady).length;
    let surplus = Math.min(this.#leastFree, open - this.#keptMax);
    // The last ones first: the first ones are opened again when they are lost.
    for (const connection of this.#connections.toReversed()) {
      if (surplus <= 0) break;
      if (!this.#free.includes(connection)) continue;
      this.#remove(connection);
      connection.retire();
      surplus--;
    }
    this.#leastFree = this.#free.length;
  }
}

const commit = { text: "COMMIT", values: [] };
const rollback = { text: "ROLLBACK", values: [] };

/** Look-ups are served first: verifications wait for them. */
type Kind = "lookups" | "others";

interface Waiter {
  readonly resolve: (connection: PgConnection) => void;
  readonly reject: (error: unknown) => void;
  /** Ends its deadline. */
  readonly cancel: () => void;
}

/** Our own, and node-postgres' messages of a connection that was already closed. */
const lostMessages = new RegExp(
  `^(${connectionLost}|Connection terminated|Client .* is not queryable|Client was closed)`,
);

/** Whether the connection was closed under the statement, and not given up because of it. */
function wasClosed(error: unknown): boolean {
  const state = sqlStateOf(error);
  if (state !== undefined) return state.startsWith("57P") || state.startsWith("08");
  const { message, code } = error as { message: string; code?: string };
  return lostMessages.test(message) || code === "ECONNRESET" || code === "EPIPE";
}
