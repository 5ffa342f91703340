import http from "node:http";
import { Duplex } from "node:stream";

/* Node's own parser of HTTP/1.1, llhttp, as a server of Node's sees it. It is fed in this process, without a socket. */

/** A request that llhttp has found. */
export interface FramedRequest {
  readonly line: string;
  /** Whether the connection stays open after it, for all that llhttp knows. */
  readonly staysOpen: boolean;
  /** Whether Node's server does not give such a request to its request listener. */
  readonly isSpecial: boolean;
  readonly message: http.IncomingMessage;
}

/** One connection. Bytes are parsed while they are fed: everything below is true as soon as `feed` has returned. */
export class LlhttpConnection {
  readonly requests: FramedRequest[] = [];
  /** Why llhttp refused the bytes, if it did. */
  refusal: string | undefined;
  readonly #socket = new SilentSocket();

  constructor() {
    this.#socket.connection = this;
    server.emit("connection", this.#socket);
  }

  /** Requests that are whole. */
  get wholeCount(): number {
    return this.requests.filter(({ message }) => message.complete).length;
  }

  feed(bytes: Buffer): void {
    this.#socket.emit("data", bytes);
  }

  /** Gives the parser back to Node. */
  close(): void {
    this.#socket.emit("close");
  }
}

/** The body of a whole request. */
export function bodyOf({ message }: FramedRequest): Buffer {
  return (message.read() as Buffer | null) ?? Buffer.alloc(0);
}

class SilentSocket extends Duplex {
  connection: LlhttpConnection | undefined;

  override _read(): void {}

  override _write(_chunk: Buffer, _encoding: string, done: () => void): void {
    done();
  }

  setTimeout(): this {
    return this;
  }
}

// With the options of the service (see src/server/port/node-http1.ts) that change what is accepted.
const server = http.createServer({ requireHostHeader: false });

function take(message: http.IncomingMessage, staysOpen: boolean, isSpecial: boolean): void {
  const line = `${message.method} ${message.url} HTTP/${message.httpVersion}`;
  connectionOf(message.socket)?.requests.push({ line, staysOpen, isSpecial, message });
}

function connectionOf(socket: unknown): LlhttpConnection | undefined {
  return (socket as SilentSocket).connection;
}

server.on("request", (req, res) => take(req, res.shouldKeepAlive, false));
for (const event of ["checkContinue", "checkExpectation"]) {
  server.on(event, (req, res) => take(req, res.shouldKeepAlive, true));
}
server.on("connect", (req) => take(req, false, true));
server.on("clientError", (error: NodeJS.ErrnoException, socket) => {
  const connection = connectionOf(socket);
  if (connection !== undefined) connection.refusal ??= error.code ?? error.message;
});
