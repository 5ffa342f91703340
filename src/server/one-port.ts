import http from "node:http";
import http2 from "node:http2";
import net from "node:net";
import type { Duplex } from "node:stream";
import type { HotConnection, TakeConnection } from "../rpc/hot/hot-connection.ts";
import type { StreamListener, TakeStream } from "../rpc/hot/hot-grpc.ts";
import type { RequestListener } from "../rpc/request-listener.ts";

/** What every HTTP/2 client says first; nothing in HTTP/1.1 begins like it. */
const preface = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

/** How long a client may take. */
export interface Patience {
  /** To say its first bytes. */
  readonly firstBytesMs: number;
  /** To send the headers of an HTTP/1.1 request. */
  readonly headersMs: number;
  /** To send a whole request. */
  readonly requestMs: number;
  /** To take the next part of an answer. More than for a request, so that a slow one is told why it is cut off. */
  readonly answerMs: number;
  /** To begin the next request on a connection of HTTP/1.1. */
  readonly keepAliveMs: number;
  /** To say anything on an HTTP/2 connection. */
  readonly idleMs: number;
}

export const defaultPatience: Patience = {
  firstBytesMs: 10_000,
  headersMs: 10_000,
  requestMs: 30_000,
  answerMs: 60_000,
  // Longer than most load balancers keep a connection, so that they are the ones to close it.
  keepAliveMs: 75_000,
  idleMs: 600_000,
};
const idleSweepMs = 50;

export interface OnePortOptions {
  readonly listener: RequestListener;
  /** A whole HTTP/1.1 response for bytes that are no HTTP request. */
  readonly malformed: (error: Error) => string;
  /** Gets every HTTP/1.1 connection first. */
  readonly takeConnection?: TakeConnection;
  /** Is offered every HTTP/2 stream first. */
  readonly takeStream?: TakeStream;
  readonly patience?: Patience;
}

/** How long an HTTP/2 stream has been looked at in vain. */
interface StreamWatch {
  /** Looks since it was opened, and since its client last took something of its answer. */
  looks: number;
  stuckLooks: number;
  pendingBytes: number;
}

/** One TCP port for HTTP/1.1 and cleartext HTTP/2: the first bytes of a connection decide. */
export class OnePort {
  readonly #server: net.Server;
  readonly #h1: http.Server;
  readonly #h2: http2.Http2Server;
  readonly #patience: Patience;
  readonly #sockets = new Set<net.Socket>();
  /** Those that have not said enough to tell what they speak. */
  readonly #undecided = new Set<net.Socket>();
  /** Answers of HTTP/1.1 that are not finished. */
  readonly #unanswered = new Set<http.ServerResponse>();
  readonly #sessions = new Set<http2.ServerHttp2Session>();
  readonly #streams = new Set<http2.ServerHttp2Stream>();
  /** Of streams that are open longer than most. */
  readonly #watches = new WeakMap<http2.ServerHttp2Stream, StreamWatch>();
  readonly #takeConnection: TakeConnection | undefined;
  readonly #hotConnections = new Map<net.Socket, HotConnection>();
  readonly #sweeping: NodeJS.Timeout;
  #closing = false;

  constructor({ listener, malformed, takeConnection, takeStream, patience = defaultPatience }: OnePortOptions) {
    this.#patience = patience;
    this.#takeConnection = takeConnection;
    this.#sweeping = setInterval(() => this.#sweep(), this.#sweepMs).unref();
    this.#h1 = this.#createHttp1(listener, malformed);
    this.#h2 = this.#createHttp2(listener, takeStream);
    this.#server = net.createServer({ noDelay: true }, (socket) => this.#receive(socket));
  }

  /** Open connections. */
  get connections(): number {
    return this.#sockets.size;
  }

  /** Resolves to the port that was bound; rejects when it cannot be. */
  listen(port: number, host: string): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen(port, host, () => {
        this.#server.off("error", reject);
        resolve((this.#server.address() as net.AddressInfo).port);
      });
    });
  }

  /** From now on clients are told to go elsewhere, along with the answer to what they asked. */
  startClosing(): void {
    this.#closing = true;
    for (const res of this.#unanswered) if (!res.headersSent) res.setHeader("connection", "close");
    for (const connection of this.#hotConnections.values()) connection.startClosing();
    for (const session of this.#sessions) session.close();
  }

  /** Stops listening and resolves when everything under way has been answered; what takes longer is cut off. */
  async close(graceMs: number): Promise<void> {
    this.startClosing();
    const closed = new Promise((resolve) => this.#server.close(resolve));
    for (const socket of this.#undecided) socket.destroy();
    // Again and again: a connection whose answer was on its way a moment ago is idle now.
    const sweep = setInterval(() => this.#closeIdleConnections(), idleSweepMs);
    const cutOff = setTimeout(() => {
      for (const socket of this.#sockets) socket.destroy();
    }, graceMs);
    this.#closeIdleConnections();
    await closed;
    clearInterval(sweep);
    clearTimeout(cutOff);
    clearInterval(this.#sweeping);
    this.#h1.close();
  }

  #closeIdleConnections(): void {
    this.#h1.closeIdleConnections();
    for (const [socket, connection] of this.#hotConnections) if (connection.isIdle) socket.destroy();
  }

  #createHttp1(listener: RequestListener, malformed: (error: Error) => string): http.Server {
    const h1 = http.createServer({
      headersTimeout: this.#patience.headersMs,
      requestTimeout: this.#patience.requestMs,
      connectionsCheckingInterval: this.#sweepMs,
      keepAliveTimeout: this.#patience.keepAliveMs,
      // The listener sees to it, and says what is missing.
      requireHostHeader: false,
    });
    h1.setTimeout(this.#patience.answerMs);
    const unanswered = this.#unanswered;
    // One for all: a closure for each would cost more than the rest.
    const forget = function (this: http.ServerResponse): void {
      unanswered.delete(this);
    };
    const onRequest: RequestListener = (req, res) => {
      if (this.#closing) res.setHeader("connection", "close");
      unanswered.add(res);
      res.on("close", forget);
      listener(req, res);
    };
    h1.on("request", onRequest);
    // What else a client expects of us is its own affair: Node would answer without a body.
    h1.on("checkExpectation", onRequest);
    h1.on("connect", (_, socket) => socket.end(malformed(new Error("there are no tunnels here"))));
    h1.on("clientError", async (error, socket) => {
      await this.#answersOnTheirWay(socket);
      if (socket.writable) socket.end(malformed(error));
      else socket.destroy();
    });
    // This server is handed its connections and never listens; but only this event starts the timer behind the
    // timeouts above, and the list behind closeIdleConnections.
    h1.emit("listening");
    return h1;
  }

  /** What follows a whole request may be garbage; its sender must not take the answer to that for its own. */
  async #answersOnTheirWay(socket: Duplex): Promise<void> {
    const unanswered = [...this.#unanswered].filter(({ req }) => req.socket === socket && req.complete);
    await Promise.all(unanswered.map((res) => new Promise((resolve) => res.once("close", resolve))));
  }

  #createHttp2(listener: RequestListener, takeStream: TakeStream | undefined): http2.Http2Server {
    const h2 = http2.createServer({
      settings: { maxConcurrentStreams: 100, maxHeaderListSize: 16_384 },
      maxSessionMemory: 4,
    });
    h2.on("session", (session) => {
      this.#sessions.add(session);
      session.on("close", () => this.#sessions.delete(session));
      session.on("error", () => session.destroy());
      session.setTimeout(this.#patience.idleMs, () => {
        const isOpen = [...this.#streams].some((stream) => stream.session === session);
        // A frame that stays half sent would keep `close` waiting for the rest of it.
        if (isOpen) session.close();
        else session.destroy();
      });
      if (this.#closing) session.close();
    });
    const onRequest = (req: http2.Http2ServerRequest, res: http2.Http2ServerResponse) => {
      // The compatibility API makes one look like the other.
      listener(req as unknown as http.IncomingMessage, res as unknown as http.ServerResponse);
    };
    // All three events bring a request; Node would answer the last two without a body.
    for (const event of ["request", "checkExpectation", "connect"]) h2.on(event, onRequest);
    const streams = this.#streams;
    const forget = function (this: http2.ServerHttp2Stream): void {
      streams.delete(this);
    };
    // The compatibility API hears of streams by one listener, which then gets only those that are left.
    const [compat, ...others] = h2.listeners("stream") as StreamListener[];
    if (compat === undefined || others.length > 0) throw new Error("node:http2 hands out streams in an unknown way");
    h2.off("stream", compat);
    const toCompat: StreamListener = (...stream) => compat.apply(h2, stream);
    h2.on("stream", (stream, headers, flags, rawHeaders) => {
      streams.add(stream);
      stream.on("close", forget);
      if (takeStream?.(stream, headers, flags, rawHeaders, toCompat) !== true) {
        toCompat(stream, headers, flags, rawHeaders);
      }
    });
    return h2;
  }

  /**
   * Ends what has been half sent, or half taken, for too long: HTTP/2 has no timeouts of its own in Node, and a timer for
   * each stream or connection costs more than a look at all of them once a second.
   */
  #sweep(): void {
    for (const stream of this.#streams) {
      const { writableLength } = stream;
      const watch = this.#watches.get(stream) ?? { looks: 0, stuckLooks: 0, pendingBytes: 0 };
      this.#watches.set(stream, watch);
      watch.looks++;
      // A stream may be silent, as one that watches our health is; but an answer that nobody takes stays in memory.
      watch.stuckLooks = writableLength > 0 && writableLength === watch.pendingBytes ? watch.stuckLooks + 1 : 0;
      watch.pendingBytes = writableLength;
      const isLate = !stream.readableEnded && this.#isLonger(watch.looks, this.#patience.requestMs);
      if (isLate || this.#isLonger(watch.stuckLooks, this.#patience.answerMs)) {
        stream.close(http2.constants.NGHTTP2_CANCEL);
      }
    }
    for (const [socket, connection] of this.#hotConnections) {
      const patienceMs = socket.writableLength > 0 ? this.#patience.answerMs : this.#patience.keepAliveMs;
      if (this.#isLonger(connection.countQuietLook(), patienceMs)) socket.destroy();
    }
  }

  #isLonger(looks: number, patienceMs: number): boolean {
    return looks * this.#sweepMs > patienceMs;
  }

  get #sweepMs(): number {
    return Math.min(1000, this.#patience.headersMs);
  }

  /** Reads until it is clear what the client speaks, then puts the bytes back and hands the connection over. */
  #receive(socket: net.Socket): void {
    this.#sockets.add(socket);
    this.#undecided.add(socket);
    socket.on("close", () => {
      this.#sockets.delete(socket);
      this.#undecided.delete(socket);
    });
    const drop = () => socket.destroy();
    socket.on("error", drop);
    socket.setTimeout(this.#patience.firstBytesMs, drop);
    let seen: Buffer = Buffer.alloc(0);
    const onData = (chunk: Buffer) => {
      seen = seen.length === 0 ? chunk : Buffer.concat([seen, chunk]);
      const compared = Math.min(seen.length, preface.length);
      const looksLikeHttp2 = seen.subarray(0, compared).equals(preface.subarray(0, compared));
      if (looksLikeHttp2 && compared < preface.length) return;
      this.#undecided.delete(socket);
      socket.off("data", onData).off("error", drop).setTimeout(0).removeAllListeners("timeout");
      if (looksLikeHttp2) handTo(this.#h2, socket, seen);
      else if (this.#takeConnection === undefined) handTo(this.#h1, socket, seen);
      else this.#serveHot(this.#takeConnection, socket, seen);
    };
    socket.on("data", onData);
  }

  #serveHot(take: TakeConnection, socket: net.Socket, seen: Buffer): void {
    const drop = () => socket.destroy();
    const forget = () => this.#hotConnections.delete(socket);
    socket.on("error", drop);
    socket.on("close", forget);
    const connection = take(socket, (rest) => {
      forget();
      socket.off("error", drop).off("close", forget);
      handTo(this.#h1, socket, rest);
    });
    this.#hotConnections.set(socket, connection);
    if (this.#closing) connection.startClosing();
    connection.receive(seen);
  }
}

/** Puts the bytes back that were read, and hands the connection over. */
function handTo(server: http.Server | http2.Http2Server, socket: net.Socket, seen: Buffer): void {
  socket.pause();
  socket.unshift(seen);
  server.emit("connection", socket);
  process.nextTick(() => socket.resume());
}
