import pg from "pg";
import { systemClock } from "../../ambient/clock.ts";
import { sha256 } from "../../ambient/crypto.ts";
import { withTimeout } from "../../ambient/with-timeout.ts";
import type { Deadline } from "../../domain/deadlines.ts";
import type { Sql } from "../sql/sql.ts";
import { isNoRoom, isStatementElsewhere, isUnconfirmedCommit } from "./pg-error.ts";
import type { PgServers, TrackedConnection } from "./pg-servers.ts";
import { clientConfig, StartupSettings } from "./pg-session.ts";
import { PgSocket } from "./pg-socket.ts";
import type { RoundTrip } from "./round-trip.ts";
import { StatementBatch } from "./statement-batch.ts";
import { queryText } from "./text-query.ts";

export interface PreparedText {
  /** Prepared under this name, once per connection. */
  readonly name: string;
  readonly text: string;
}

/** Prepared if it has a name. */
export interface PgStatement extends Partial<PreparedText> {
  readonly text: string;
  readonly values: readonly unknown[];
  /** Rows as arrays of their columns, each as the server's text, instead of objects with values. */
  readonly rowMode?: "text";
}

export function toPgStatement({ texts, values }: Sql): PgStatement {
  return { text: texts.reduce((text, next, i) => `${text}$${i}${next}`), values };
}

/**
 * The name is derived from the text. Behind a pooler another client may already have prepared the same name, and then it
 * must mean the same text, whatever version of this service that client runs.
 */
export function preparedText(text: string): PreparedText {
  return { name: `latchkey_${sha256(text).slice(0, 16)}`, text };
}

export interface PgReply {
  readonly rows: readonly Record<string, unknown>[];
  readonly rowCount: number | null;
  /** The server committed but stopped waiting for its synchronous standby: the commit may still be lost. */
  readonly doubtful: boolean;
}

/**
 * The connection that was open at one moment. When it is lost its statements throw, also if another one is open by then:
 * the rest of a transaction must not run outside it.
 */
export interface PgSession {
  run(statement: PgStatement, deadline: Deadline): Promise<PgReply>;
  /**
   * Runs the statements in this order, in one round trip. If one fails, those behind it are not run. Names are ignored. Each
   * reply says whether any of their commits is doubtful.
   */
  runAll(statements: readonly PgStatement[], deadline: Deadline): Promise<PgReply[]>;
  discard(): void;
}

export const connectionLost = "the connection was lost";

export interface PgConnectionOptions {
  /** Opens it again when it is lost, so that no caller has to wait for a new one, which takes several round trips. */
  readonly keepOpen?: boolean;
  /** Learns how long replies take. */
  readonly roundTrip?: RoundTrip | undefined;
  /** Called when the connection is open. */
  readonly onOpen?: () => void;
  /** Called when an attempt to open it has failed, also one in the background. */
  readonly onOpenFailed?: (error: unknown) => void;
  /** Called when an open connection is lost. */
  readonly onLost?: () => void;
  /** Replaces the settings that are sent when it connects. */
  readonly settings?: readonly string[] | undefined;
  /** Replaces how a connection is made, in tests. */
  readonly createSocket?: () => PgSocket;
}

/** The pause before another attempt to connect, if the one before failed fast. */
const reopenPauseMs = 250;
/** The same if the server has no room for another connection. */
const noRoomPauseMs = 5000;
/** An attempt that took this long is followed by the next one immediately. */
const slowAttemptMs = 1000;

/**
 * One connection, opened when needed and discarded on any problem. One statement at a time. Connecting continues after
 * the caller has given up: otherwise, on a slow link, every caller would start again and none would ever be connected.
 */
export class PgConnection {
  readonly #servers: PgServers;
  readonly #options: PgConnectionOptions;
  readonly #startup: StartupSettings;
  /** Whether prepared statements stay available. Not behind a pooler that pools by transaction. */
  #keepsPrepared = true;
  #open: OpenClient | undefined;
  #connecting: Promise<void> | undefined;
  #connectingSocket: PgSocket | undefined;
  #reopenTimer: NodeJS.Timeout | undefined;
  #wasOpen = false;
  #closed = false;
  #doubtful = false;
  #isRunning = false;

  constructor(servers: PgServers, options: PgConnectionOptions = {}) {
    this.#servers = servers;
    this.#options = options;
    this.#startup = new StartupSettings(options.settings);
  }

  get isReady(): boolean {
    return this.#open !== undefined;
  }

  /** Resolves when there is a connection; throws if the attempt fails, or there is none in time. */
  async ready(deadline?: Deadline): Promise<void> {
    if (this.#open !== undefined) return;
    if (this.#connecting === undefined) {
      clearTimeout(this.#reopenTimer);
      this.#connecting = this.#connect();
    }
    await (deadline === undefined
      ? this.#connecting
      : withTimeout(this.#connecting, deadline, () => new Error("no connection in time")));
  }

  /** Throws the error of the server or the connection. After a timeout the statement may still be running. */
  async run(statement: PgStatement, deadline: Deadline): Promise<PgReply> {
    await this.ready(deadline);
    return this.session().run(statement, deadline);
  }

  session(): PgSession {
    const open = this.#open;
    return {
      run: (statement, deadline) => this.#runPrepared(open, statement, deadline),
      runAll: (statements, deadline) => this.#runAll(open, statements, deadline),
      discard: () => this.#discardIf(open),
    };
  }

  /** Resets the connection. What it had under way may or may not happen. */
  discard(): void {
    const open = this.#open;
    if (open === undefined) return;
    this.#open = undefined;
    this.#abandon(open);
    this.#servers.onConnectionLost();
    this.#options.onLost?.();
    this.#reopenAfter(0);
  }

  /** Unless another one has taken its place. */
  #discardIf(open: OpenClient | undefined): void {
    if (this.#open === open) this.discard();
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#reopenTimer);
    this.#connectingSocket?.abandon();
    if (this.#isRunning) this.discard();
    const open = this.#open;
    this.#open = undefined;
    if (open === undefined) return;
    this.#servers.release(open.tracked);
    open.client.end().catch(() => {});
  }

  async #runPrepared(open: OpenClient | undefined, statement: PgStatement, deadline: Deadline): Promise<PgReply> {
    if (statement.name === undefined || !this.#keepsPrepared) return this.#run(open, statement, deadline);
    try {
      return await this.#run(open, statement, deadline);
    } catch (error) {
      if (!isStatementElsewhere(error)) throw error;
      // It failed before it began. From now on the whole text is sent each time, and the server plans it each time.
      this.#keepsPrepared = false;
      return this.#run(open, statement, deadline);
    }
  }

  async #run(open: OpenClient | undefined, { name, text, values, rowMode }: PgStatement, deadline: Deadline) {
    const config = { ...(this.#keepsPrepared && name !== undefined && { name }), text, values: [...values] };
    const ask = (client: pg.Client): Promise<Omit<PgReply, "doubtful">> =>
      rowMode === "text" ? queryText(client, config) : client.query(config);
    const { rows, rowCount } = await this.#answerOf(open, ask, deadline);
    return { rows, rowCount, doubtful: this.#doubtful };
  }

  async #runAll(open: OpenClient | undefined, statements: readonly PgStatement[], deadline: Deadline) {
    const results = await this.#answerOf(open, (client) => StatementBatch.run(client, statements), deadline);
    return results.map(({ rows, rowCount }) => ({ rows, rowCount, doubtful: this.#doubtful }));
  }

  async #answerOf<Answer>(
    open: OpenClient | undefined,
    ask: (client: pg.Client) => Promise<Answer>,
    deadline: Deadline,
  ): Promise<Answer> {
    if (open === undefined || this.#open !== open) throw new Error(connectionLost);
    this.#doubtful = false;
    this.#isRunning = true;
    const sentAtMs = systemClock.monotonicMs();
    const answer = await withTimeout(ask(open.client), deadline, () => new Error("no reply in time")).finally(() => {
      this.#isRunning = false;
    });
    const nowMs = systemClock.monotonicMs();
    this.#options.roundTrip?.onReply(nowMs - sentAtMs, nowMs);
    return answer;
  }

  async #connect(): Promise<void> {
    const startedMs = systemClock.monotonicMs();
    try {
      await this.#connectOnce().catch((error: unknown) => {
        if (!this.#startup.wereRefused(error)) throw error;
        return this.#connectOnce();
      });
      this.#connecting = undefined;
      this.#wasOpen = true;
      this.#options.onOpen?.();
    } catch (error) {
      this.#connecting = undefined;
      this.#options.onOpenFailed?.(error);
      const isSlow = systemClock.monotonicMs() - startedMs >= slowAttemptMs;
      this.#reopenAfter(isNoRoom(error) ? noRoomPauseMs : isSlow ? 0 : reopenPauseMs);
      throw error;
    }
  }

  /** In the background. A server that has never let us in is left alone. */
  #reopenAfter(pauseMs: number): void {
    if (!this.#options.keepOpen || !this.#wasOpen || this.#closed) return;
    clearTimeout(this.#reopenTimer);
    this.#reopenTimer = setTimeout(() => this.ready().catch(() => {}), pauseMs).unref();
  }

  async #connectOnce(): Promise<void> {
    const server = await this.#servers.locate();
    const { options } = this.#startup;
    const socket = this.#options.createSocket?.() ?? new PgSocket();
    const client = new pg.Client({ ...clientConfig(server), stream: () => socket, ...(options && { options }) });
    const tracked = this.#servers.track(server, () => this.#onReplaced(opened));
    const opened: OpenClient = { client, socket, tracked };
    // Without a listener the loss of an idle connection would end the process.
    client.on("error", () => this.#discardIf(opened));
    client.on("end", () => this.#discardIf(opened));
    client.on("notice", (notice) => {
      if (isUnconfirmedCommit(notice)) this.#doubtful = true;
    });
    this.#connectingSocket = socket;
    try {
      await client.connect();
      await this.#servers.verify(tracked, client);
      if (this.#closed) throw new Error("closed meanwhile");
      socket.onReady();
      this.#open = opened;
    } catch (error) {
      this.#abandon(opened);
      this.#servers.onConnectFailed(tracked, error);
      throw error;
    } finally {
      this.#connectingSocket = undefined;
    }
  }

  /** Another server is the primary now. */
  #onReplaced(opened: OpenClient): void {
    if (this.#open === opened) this.discard();
    else opened.socket.abandon();
  }

  /** Not only `end()`, which waits for the statement under way: a connection that hangs would block us. */
  #abandon({ client, socket, tracked }: OpenClient): void {
    this.#servers.release(tracked);
    // First: `end` would close the socket politely.
    socket.abandon();
    client.end().catch(() => {});
  }
}

interface OpenClient {
  readonly client: pg.Client;
  readonly socket: PgSocket;
  readonly tracked: TrackedConnection;
}
