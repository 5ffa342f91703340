import type { IncomingMessage } from "node:http";
import type { Http2ServerRequest } from "node:http2";
import net from "node:net";
import type { TLSSocket } from "node:tls";
import { type Clock, systemClock } from "../../ambient/clock.ts";
import type { TakeStream } from "../../rpc/fast-path/hot-grpc.ts";
import { type ConnectionLimit, rejectConnection, rejectingMax } from "./connection-limit.ts";
import { type Connections, defaultTimeouts, sweepEveryMs, type Timeouts } from "./connections.ts";
import { type Http1Options, Http1Server } from "./http1-server.ts";
import { Http2Connections } from "./http2-connections.ts";
import { acceptWaiting, listenAt } from "./listening.ts";
import { TlsHandshakes, type TlsOptions } from "./tls-handshakes.ts";

/** Every HTTP/2 client sends this first. No HTTP/1.1 request begins like it. */
const preface = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
const idleSweepMs = 50;
/** At shutdown, a connection whose protocol is not known yet is closed after so many sweeps of `idleSweepMs`. */
const undecidedSweepsMax = 5;

export interface OnePortOptions extends Http1Options {
  /** Is offered every HTTP/2 stream first. */
  readonly takeStream?: TakeStream;
  readonly timeouts?: Timeouts;
  /** Absent: no limit. */
  readonly connectionLimit?: ConnectionLimit;
  /** Absent: cleartext. */
  readonly tls?: TlsOptions | undefined;
  /** Times handshakes. Default: the system's. */
  readonly clock?: Pick<Clock, "monotonicMs">;
  /** Called for every handshake that fails. */
  readonly onHandshakeFailed?: () => void;
  /** Called for every HTTP/2 stream that is refused because too many requests are incomplete. */
  readonly onStreamRefused?: () => void;
}

/**
 * One TCP port for HTTP/1.1 and HTTP/2, in cleartext or over TLS, never both. In cleartext the first bytes of a connection
 * decide between the two, over TLS its handshake does (ALPN): without a word about it, it is HTTP/1.1.
 */
export class OnePort {
  readonly #server: net.Server;
  readonly #http1: Http1Server;
  readonly #http2: Http2Connections;
  readonly #tls: TlsHandshakes | undefined;
  readonly #all: readonly Connections[];
  readonly #sockets = new Set<net.Socket>();
  /** Connections that are not trusted, the oldest first. Over TLS they are in here from before the handshake. */
  readonly #strangers = new Set<net.Socket>();
  /** The connections below sockets of TLS. */
  readonly #connectionOf = new WeakMap<net.Socket, net.Socket>();
  /**
   * Connections whose protocol is not known yet, also during their handshake, with the calls of `#ageUndecided` since they
   * came. The count restarts when the server closes.
   */
  readonly #undecided = new Map<net.Socket, number>();
  #connectionLimit: ConnectionLimit | undefined;
  /** Connections above the limit that get an answer. */
  #rejecting = 0;
  /** Called when the last connection has closed. */
  #onLastClosed: (() => void) | undefined;
  readonly #sweepTimer: NodeJS.Timeout;

  constructor(options: OnePortOptions) {
    const { listener, takeStream, guard, timeouts = defaultTimeouts, connectionLimit } = options;
    this.#http1 = new Http1Server(options, timeouts);
    this.#http2 = new Http2Connections(listener, takeStream, guard, timeouts, options.onStreamRefused);
    this.#all = [this.#http1, this.#http2];
    this.#connectionLimit = connectionLimit;
    const onSecured = (connection: net.Socket, secured: TLSSocket) => {
      this.#connectionOf.set(secured, connection);
      secured.once("data", (chunk: Buffer) => {
        this.#undecided.delete(connection);
        (secured.alpnProtocol === "h2" ? this.#http2 : this.#http1).serve(secured, chunk);
      });
    };
    const { onHandshakeFailed: onFailed = () => {}, clock = systemClock } = options;
    this.#tls = options.tls && new TlsHandshakes({ tls: options.tls, guard, clock, onSecured, onFailed });
    const sweep = () => {
      for (const connections of this.#all) connections.sweep();
      this.#tls?.sweep();
      this.#ageUndecided(timeouts.firstBytesMs / sweepEveryMs(timeouts));
    };
    this.#sweepTimer = setInterval(sweep, sweepEveryMs(timeouts)).unref();
    this.#server = net.createServer({ noDelay: true }, (socket) => {
      guard.watch(socket);
      // Stays for the connection's whole life: Node removes its own listener when it releases a socket.
      socket.on("error", () => socket.destroy());
      this.#admit(socket, this.#connectionLimit);
    });
    guard.watch(this.#server);
  }

  /** Connections that are open stay open. */
  setConnectionsMax(connectionsMax: number): void {
    if (this.#connectionLimit !== undefined) this.#connectionLimit = { ...this.#connectionLimit, connectionsMax };
  }

  /** Open connections. */
  get connections(): number {
    return this.#sockets.size;
  }

  /**
   * The caller of this request has shown that it is no stranger: new connections no longer close its own. Only over
   * HTTP/2. Connections of HTTP/1.1 are short, and their clients open new ones.
   */
  trust(req: IncomingMessage): void {
    const { session } = (req as unknown as Partial<Http2ServerRequest>).stream ?? {};
    const socket = session && this.#http2.socketOf(session);
    if (socket !== undefined) this.#strangers.delete(this.#connectionOf.get(socket) ?? socket);
  }

  /** For connections from now on. A port goes on to speak TLS, or cleartext, as it did. */
  setTls(options: TlsOptions | undefined): void {
    if (options !== undefined) this.#tls?.set(options);
  }

  /** Resolves to the bound port, or rejects. */
  listen(port: number, host: string): Promise<number> {
    return listenAt(this.#server, { port, host });
  }

  /** On a Unix socket. */
  async listenOnSocket(path: string): Promise<void> {
    await listenAt(this.#server, { path });
  }

  /** Serves a connection that another process has accepted. */
  accept(socket: net.Socket): void {
    this.#server.emit("connection", socket);
  }

  /** Starts a graceful shutdown: from now on the next answer on each connection also tells the client to leave. */
  startShutdown(): void {
    for (const connections of this.#all) connections.startShutdown();
  }

  /** Stops listening. Resolves when all requests under way are answered; after `graceMs` the rest is cut off. */
  async close(graceMs: number): Promise<void> {
    this.startShutdown();
    await acceptWaiting(this.#server);
    const closed = Promise.all([new Promise((resolve) => this.#server.close(resolve)), this.#allClosed()]);
    // Their count restarts here.
    for (const socket of this.#undecided.keys()) this.#undecided.set(socket, 0);
    const closeIdle = () => {
      for (const connections of this.#all) connections.closeIdle();
      this.#ageUndecided(undecidedSweepsMax);
    };
    // Repeated, because a connection that was still sending an answer becomes idle a moment later.
    const sweep = setInterval(closeIdle, idleSweepMs);
    const cutOff = setTimeout(() => {
      for (const socket of this.#sockets) socket.destroy();
    }, graceMs);
    closeIdle();
    await closed;
    clearInterval(sweep);
    clearTimeout(cutOff);
    clearInterval(this.#sweepTimer);
    this.#http1.stop();
  }

  #allClosed(): Promise<void> {
    return new Promise((resolve) => {
      this.#onLastClosed = resolve;
      if (this.#sockets.size === 0) resolve();
    });
  }

  /** Closes connections whose protocol is still unknown after so many sweeps. Sending a few bytes does not extend it. */
  #ageUndecided(sweepsMax: number): void {
    for (const [socket, sweeps] of this.#undecided) {
      if (sweeps >= sweepsMax) socket.destroy();
      else this.#undecided.set(socket, sweeps + 1);
    }
  }

  /** Takes a new connection if there is room for it. */
  #admit(socket: net.Socket, limit: ConnectionLimit | undefined): void {
    const { connectionsMax, strangersMax } = limit ?? {};
    if (strangersMax !== undefined && this.#strangers.size >= strangersMax) {
      const [oldest] = this.#strangers;
      if (oldest !== undefined) this.#forget(oldest);
      oldest?.destroy();
      limit?.onRejected();
    }
    if (limit === undefined || connectionsMax === undefined || this.#sockets.size < connectionsMax) {
      this.#receive(socket);
    } else if (this.#tls === undefined && this.#rejecting < rejectingMax) {
      this.#rejecting++;
      socket.on("close", () => this.#rejecting--);
      rejectConnection(socket, limit);
    } else {
      limit.onRejected();
      socket.destroy();
    }
  }

  #receive(connection: net.Socket): void {
    this.#sockets.add(connection);
    this.#strangers.add(connection);
    this.#undecided.set(connection, 0);
    connection.on("close", () => this.#forget(connection));
    if (this.#tls === undefined) this.#detectProtocol(connection);
    else this.#tls.start(connection);
  }

  #forget(connection: net.Socket): void {
    this.#sockets.delete(connection);
    this.#strangers.delete(connection);
    this.#undecided.delete(connection);
    if (this.#sockets.size === 0) this.#onLastClosed?.();
  }

  /** Reads until the protocol is known, then passes the socket on with the bytes read so far. */
  #detectProtocol(socket: net.Socket): void {
    let seen: Buffer = Buffer.alloc(0);
    const onData = (chunk: Buffer) => {
      seen = seen.length === 0 ? chunk : Buffer.concat([seen, chunk]);
      const compared = Math.min(seen.length, preface.length);
      const looksLikeHttp2 = seen.subarray(0, compared).equals(preface.subarray(0, compared));
      if (looksLikeHttp2 && compared < preface.length) return;
      this.#undecided.delete(socket);
      socket.off("data", onData);
      (looksLikeHttp2 ? this.#http2 : this.#http1).serve(socket, seen);
    };
    socket.on("data", onData);
  }
}
