import http from "node:http";
import http2 from "node:http2";
import net from "node:net";
import type { RequestListener } from "../rpc/request-listener.ts";

/** What every HTTP/2 client says first; nothing in HTTP/1.1 begins like it. */
const preface = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

/** How long a client may take: to say its first bytes, to send its headers, to send a whole request. */
export interface Patience {
  readonly firstBytesMs: number;
  readonly headersMs: number;
  readonly requestMs: number;
}

const defaultPatience: Patience = { firstBytesMs: 10_000, headersMs: 10_000, requestMs: 30_000 };
/** An idle HTTP/1.1 connection is kept longer than most load balancers keep it, so that they are the ones to close. */
const keepAliveMs = 75_000;
const idleSessionMs = 600_000;
const idleSweepMs = 50;

export interface OnePortOptions {
  readonly listener: RequestListener;
  /** A whole HTTP/1.1 response for bytes that are no HTTP request. */
  readonly malformed: (error: Error) => string;
  readonly patience?: Patience;
}

/** One TCP port for HTTP/1.1 and cleartext HTTP/2: the first bytes of a connection decide. */
export class OnePort {
  readonly #server: net.Server;
  readonly #h1: http.Server;
  readonly #h2: http2.Http2Server;
  readonly #patience: Patience;
  readonly #sockets = new Set<net.Socket>();
  readonly #sessions = new Set<http2.ServerHttp2Session>();
  #closing = false;

  constructor({ listener, malformed, patience = defaultPatience }: OnePortOptions) {
    this.#patience = patience;
    this.#h1 = this.#createHttp1(listener, malformed);
    this.#h2 = this.#createHttp2(listener);
    this.#server = net.createServer({ noDelay: true }, (socket) => this.#receive(socket));
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
    for (const session of this.#sessions) session.close();
  }

  /** Stops listening and resolves when everything under way has been answered; what takes longer is cut off. */
  async close(graceMs: number): Promise<void> {
    this.startClosing();
    const closed = new Promise((resolve) => this.#server.close(resolve));
    // Again and again: a connection whose answer was on its way a moment ago is idle now.
    const sweep = setInterval(() => this.#h1.closeIdleConnections(), idleSweepMs);
    const cutOff = setTimeout(() => {
      for (const socket of this.#sockets) socket.destroy();
    }, graceMs);
    this.#h1.closeIdleConnections();
    await closed;
    clearInterval(sweep);
    clearTimeout(cutOff);
    this.#h1.close();
  }

  #createHttp1(listener: RequestListener, malformed: (error: Error) => string): http.Server {
    const h1 = http.createServer({
      headersTimeout: this.#patience.headersMs,
      requestTimeout: this.#patience.requestMs,
      connectionsCheckingInterval: Math.min(1000, this.#patience.headersMs),
      keepAliveTimeout: keepAliveMs,
    });
    h1.on("request", (req, res) => {
      if (this.#closing) res.setHeader("connection", "close");
      listener(req, res);
    });
    h1.on("clientError", (error, socket) => {
      if (socket.writable) socket.end(malformed(error));
      else socket.destroy();
    });
    // This server is handed its connections and never listens; but only this event starts the timer behind the
    // timeouts above, and the list behind closeIdleConnections.
    h1.emit("listening");
    return h1;
  }

  #createHttp2(listener: RequestListener): http2.Http2Server {
    const h2 = http2.createServer({
      settings: { maxConcurrentStreams: 100, maxHeaderListSize: 16_384 },
      maxSessionMemory: 4,
    });
    h2.on("session", (session) => {
      this.#sessions.add(session);
      session.on("close", () => this.#sessions.delete(session));
      session.on("error", () => session.destroy());
      session.setTimeout(idleSessionMs, () => session.close());
      if (this.#closing) session.close();
    });
    h2.on("request", (req, res) => {
      // HTTP/2 has no timeouts of its own in Node: a request that stays half sent is ours to end.
      const impatient = setTimeout(() => req.stream.close(http2.constants.NGHTTP2_CANCEL), this.#patience.requestMs);
      for (const event of ["end", "close"]) req.once(event, () => clearTimeout(impatient));
      // The compatibility API makes one look like the other.
      listener(req as unknown as http.IncomingMessage, res as unknown as http.ServerResponse);
    });
    return h2;
  }

  /** Reads until it is clear what the client speaks, then puts the bytes back and hands the connection over. */
  #receive(socket: net.Socket): void {
    this.#sockets.add(socket);
    socket.on("close", () => this.#sockets.delete(socket));
    const drop = () => socket.destroy();
    socket.on("error", drop);
    socket.setTimeout(this.#patience.firstBytesMs, drop);
    let seen: Buffer = Buffer.alloc(0);
    const onData = (chunk: Buffer) => {
      seen = seen.length === 0 ? chunk : Buffer.concat([seen, chunk]);
      const compared = Math.min(seen.length, preface.length);
      const looksLikeHttp2 = seen.subarray(0, compared).equals(preface.subarray(0, compared));
      if (looksLikeHttp2 && compared < preface.length) return;
      socket.off("data", onData).off("error", drop).setTimeout(0).removeAllListeners("timeout");
      socket.pause();
      socket.unshift(seen);
      (looksLikeHttp2 ? this.#h2 : this.#h1).emit("connection", socket);
      process.nextTick(() => socket.resume());
    };
    socket.on("data", onData);
  }
}
