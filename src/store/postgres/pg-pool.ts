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
}

/** How long a query may wait for a connection, and how long it may take. What it does not wait it may take longer. */
export interface QueryTimeouts {
  readonly waitMs: number;
  readonly queryMs: number;
}

/** Most queries that wait for a connection; one more is refused. Verifications wait before the pool, not in it. */
const queriesQueuedMax = 1000;
/** Connections that other queries leave to look-ups. Over a distance each of them holds its connection for long. */
export const keptForLookups = 3;
/** From this round trip on. A database that is nearer has answered a query before a look-up misses its connection. */
const farMs = 10;
/** Round trips that opening a connection takes, with TLS and a password, and some to spare. */
const openRoundTrips = 10;
/** Further connections are opened after this pause, so that the ledgers come first where there is little room. */
const openPauseMs = 250;
/** The pause before another attempt to connect. Only one connection is tried while none is open. */
const retryPauseMs = 100;
/** The same if the server has no room for more connections than are open. */
const fullPauseMs = 5000;

/**
 * A fixed number of connections for everything except the ledgers. All are opened after the first query and stay open, since
 * a new one takes several round trips, longer than a look-up may wait. One that is lost is opened again. A query takes the
 * first connection that is free. A query that takes too long loses its connection.
 */
export class PgPool {
  readonly #connections: readonly PgConnection[];
  /** Open and not in use, the one used longest ago first: so each is used now and then, and a dead one is found. */
  readonly #free: PgConnection[] = [];
  readonly #waiting: Readonly<Record<Kind, Waiter[]>> = { lookups: [], others: [] };
  readonly #roundTrip: RoundTrip | undefined;
  readonly #inUse = new Set<PgConnection>();
  /** How many of those in use are not used by look-ups. */
  #others = 0;
  #isStarted = false;
  #opening: NodeJS.Timeout | undefined;
  /** Why no connection could be opened lately. */
  #openError: unknown;
  #onIdle: (() => void) | undefined;
  #closed = false;

  constructor({ servers, connectionsMax, roundTrip }: PgPoolOptions) {
    this.#roundTrip = roundTrip;
    this.#connections = Array.from({ length: connectionsMax }, () => {
      const connection: PgConnection = new PgConnection(servers, {
        roundTrip,
        onOpen: () => this.#onOpen(connection),
        onOpenFailed: (error) => this.#onOpenFailed(error),
        onLost: () => this.#onLost(connection),
      });
      return connection;
    });
  }

  /** For statements that only read: they may be sent a second time. Throws `UniqueViolation` or `Unavailable`. */
  async query(statement: PgStatement, timeouts: QueryTimeouts, kind: Kind = "others"): Promise<PgReply> {
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
  async transaction(statements: readonly PgStatement[], { waitMs, queryMs }: QueryTimeouts): Promise<PgReply[]> {
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

  /** How much longer a query may wait because no connection may be open. Look-ups cannot wait for a new one. */
  #openMs(kind: Kind): number {
    return kind === "lookups" ? 0 : (this.#roundTrip?.ms ?? 0) * openRoundTrips;
  }

  /** Resolves when all queries under way are answered and the connections are closed. */
  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#opening);
    this.#rejectWaiting(new Unavailable("the store is closed"));
    if (this.#inUse.size > 0) {
      await new Promise<void>((resolve) => {
        this.#onIdle = resolve;
      });
    }
    for (const connection of this.#connections) connection.close();
  }

  async #withSession<Result>(kind: Kind, waitMs: number, use: (session: PgSession) => Promise<Result>) {
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
        reject(this.#openError ?? new Error("no connection in time"));
      });
      const waiter: Waiter = { resolve, reject, cancel };
      queue.push(waiter);
      this.#serve();
      if (!this.#isStarted) this.#open();
    });
  }

  /** Opens a connection, or all that are missing once there is one: so a server that is down gets few attempts. */
  #open(): void {
    this.#isStarted = true;
    const missing = this.#connections.filter(({ isReady }) => !isReady);
    const tried = missing.length < this.#connections.length ? missing : missing.slice(0, 1);
    for (const connection of tried) connection.ready().catch(() => {});
  }

  #openAfter(pauseMs: number): void {
    this.#opening ??= setTimeout(() => {
      this.#opening = undefined;
      this.#open();
    }, pauseMs).unref();
  }

  #onOpen(connection: PgConnection): void {
    this.#openError = undefined;
    this.#offer(connection);
    if (!this.#closed) this.#openAfter(openPauseMs);
  }

  /** Every attempt ends here, in `#onOpen` or in `#onLost`, so that another one always follows if one is missing. */
  #onOpenFailed(error: unknown): void {
    if (this.#closed) return;
    const isFull = isNoRoom(error);
    this.#openAfter(isFull && this.#hasOpen ? fullPauseMs : retryPauseMs);
    if (this.#hasOpen) return;
    this.#openError = error;
    // A connection may become free elsewhere while queries wait. Any other error is theirs.
    if (!isFull) this.#rejectWaiting(error);
  }

  #onLost(connection: PgConnection): void {
    const at = this.#free.indexOf(connection);
    if (at >= 0) this.#free.splice(at, 1);
    if (this.#closed) return;
    if (this.#hasOpen) this.#openAfter(openPauseMs);
    else this.#open();
  }

  get #hasOpen(): boolean {
    return this.#connections.some(({ isReady }) => isReady);
  }

  /** The connection is free: it was opened, or its query is done. */
  #offer(connection: PgConnection): void {
    // Lost by a caller and already open again: it is offered when that caller releases it.
    if (this.#closed || this.#inUse.has(connection)) return;
    this.#free.push(connection);
    this.#serve();
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

  #rejectWaiting(error: unknown): void {
    for (const queue of Object.values(this.#waiting)) {
      for (const { cancel, reject } of queue.splice(0)) {
        cancel();
        reject(error);
      }
    }
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
