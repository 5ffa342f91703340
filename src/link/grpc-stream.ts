import { lookup } from "node:dns/promises";
import http2 from "node:http2";
import net from "node:net";
import tls from "node:tls";

interface GrpcStreamOptions {
  /** `host:port`, `http://host:port`, `https://host:port` for TLS, or `unix:path` for a Unix socket. */
  readonly address: string;
  /** Where a name has several addresses: the number of the one to begin with. Larger numbers begin again. */
  readonly firstAddress: number;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Certificates in PEM form that replace the ones that Node trusts. */
  readonly ca?: string | undefined;
  /** A certificate in PEM form, with its private key, for servers that ask for one. */
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
  readonly onMessage: (message: Buffer) => void;
  /** More can be written. */
  readonly onDrain: () => void;
  /** Called once, with the reason in a word. Nothing is called after it, and nothing at all after `reset`. */
  readonly onClose: (reason: string) => void;
}

/** Enough for the answers of a quarter of a second on a path across an ocean. */
const windowBytes = 1024 * 1024;
const messageBytesMax = 8 * 1024 * 1024;
const prefixBytes = 5;
export const unixScheme = "unix:";

/**
 * One gRPC stream on a connection of its own. It is built on `node:http2` with a socket of ours, because only the owner
 * of the socket can reset it. A connection that is closed politely goes on in the kernel: what was queued is still sent,
 * and arrives when the network works again.
 */
export class GrpcStream {
  readonly #options: GrpcStreamOptions;
  #socket: net.Socket | undefined;
  #session: http2.ClientHttp2Session | undefined;
  #stream: http2.ClientHttp2Stream | undefined;
  /** What has arrived of messages that are not complete yet. */
  #chunks: Buffer[] = [];
  #chunkBytes = 0;
  /** As many bytes the next message has, with its prefix. */
  #wantedBytes = prefixBytes;
  #status: string | undefined;
  #isClosed = false;

  constructor(options: GrpcStreamOptions) {
    this.#options = options;
    this.#open().catch((error: unknown) => this.#close(reasonOf(error)));
  }

  /** Whether a message written now would wait in this process instead of going to the socket. */
  get isFull(): boolean {
    return this.#stream?.writableNeedDrain ?? true;
  }

  write(message: Uint8Array): void {
    const frame = Buffer.allocUnsafe(prefixBytes + message.length);
    frame[0] = 0;
    frame.writeUInt32BE(message.length, 1);
    frame.set(message, prefixBytes);
    this.#stream?.write(frame);
  }

  /** Nothing more is written. The stream closes when the other side has ended it too. */
  end(): void {
    if (this.#stream === undefined) this.reset();
    else this.#stream.end();
  }

  /** Gives the connection up: it is reset, and the kernel drops what was queued. No handler is called any more. */
  reset(): void {
    this.#isClosed = true;
    this.#resetSocket();
  }

  async #open(): Promise<void> {
    const { address, path, headers } = this.#options;
    const isUnix = address.startsWith(unixScheme);
    const url = isUnix ? "http://localhost" : address.includes("://") ? address : `http://${address}`;
    const { hostname, port, protocol } = new URL(url);
    const host = hostname.replace(/^\[|\]$/g, "");
    const isTls = protocol === "https:";
    const socket = isUnix
      ? await this.#connectTo({ path: address.slice(unixScheme.length) })
      : // `URL` leaves out the port where it is the protocol's own.
        await this.#connect(host, Number(port) || (isTls ? 443 : 80));
    if (socket === undefined) return;
    const session = http2.connect(`${protocol}//${hostname}:${port}`, {
      createConnection: () => (isTls ? this.#secure(socket, host) : socket),
      settings: { enablePush: false, initialWindowSize: windowBytes },
    });
    this.#session = session;
    session.on("error", (error) => this.#close(reasonOf(error)));
    session.on("close", () => this.#close("closed"));
    session.once("connect", () => session.setLocalWindowSize(windowBytes));
    const stream = session.request({
      ":method": "POST",
      ":path": path,
      "content-type": "application/grpc",
      te: "trailers",
      ...headers,
    });
    this.#stream = stream;
    stream.on("response", (response) => this.#onHead(response));
    stream.on("trailers", (trailers) => this.#onHead(trailers));
    stream.on("data", (chunk: Buffer) => this.#onData(chunk));
    stream.on("drain", () => this.#isClosed || this.#options.onDrain());
    stream.on("error", (error) => this.#close(reasonOf(error)));
    // The other side decides when the stream is over, whether or not this side has ended it.
    for (const event of ["end", "close"]) stream.on(event, () => this.#close(this.#status ?? "closed"));
  }

  /** To the first address of the host that accepts a connection. Undefined: given up meanwhile. */
  async #connect(host: string, port: number): Promise<net.Socket | undefined> {
    const addresses = net.isIP(host) ? [{ address: host }] : await lookup(host, { all: true });
    let failure: unknown = new Error("no address");
    for (let i = 0; i < addresses.length && !this.#isClosed; i++) {
      const at = (this.#options.firstAddress + i) % addresses.length;
      try {
        return await this.#connectTo({ host: addresses[at]?.address ?? host, port, noDelay: true });
      } catch (error) {
        failure = error;
      }
    }
    if (this.#isClosed) return undefined;
    throw failure;
  }

  /** Undefined: given up meanwhile. */
  async #connectTo(peer: net.NetConnectOpts): Promise<net.Socket | undefined> {
    const socket = net.connect(peer);
    this.#socket = socket;
    await connected(socket);
    if (!this.#isClosed) return socket;
    socket.destroy();
    return undefined;
  }

  #secure(socket: net.Socket, host: string): tls.TLSSocket {
    const { ca, cert, key } = this.#options;
    const servername = net.isIP(host) ? "" : host;
    const secured = tls.connect({ socket, host, servername, ALPNProtocols: ["h2"], ca, cert, key });
    // The session handles the first error. Node can emit another one after it, which would end the process.
    return secured.on("error", () => {});
  }

  #onHead(head: http2.IncomingHttpHeaders & http2.IncomingHttpStatusHeader): void {
    const httpStatus = head[":status"];
    if (head["grpc-status"] !== undefined) this.#status = statusNames[Number(head["grpc-status"])] ?? "UNKNOWN";
    else if (httpStatus !== undefined && httpStatus !== 200) this.#status = `HTTP ${httpStatus}`;
  }

  #onData(chunk: Buffer): void {
    // Only a stream of messages has messages: the body of another answer is for people.
    if (this.#status !== undefined) return;
    this.#chunks.push(chunk);
    this.#chunkBytes += chunk.length;
    // Put together only when a message is complete: doing it with each chunk would copy a large one many times.
    if (this.#chunkBytes < this.#wantedBytes) return;
    let received = this.#chunks.length === 1 ? chunk : Buffer.concat(this.#chunks);
    this.#wantedBytes = prefixBytes;
    while (received.length >= prefixBytes && !this.#isClosed) {
      const end = prefixBytes + received.readUInt32BE(1);
      if (received[0] !== 0 || end > messageBytesMax) {
        this.#close("a message that cannot be read");
        return;
      }
      this.#wantedBytes = end;
      if (received.length < end) break;
      this.#wantedBytes = prefixBytes;
      const message = received.subarray(prefixBytes, end);
      received = received.subarray(end);
      this.#options.onMessage(message);
    }
    this.#chunks = received.length > 0 ? [received] : [];
    this.#chunkBytes = received.length;
  }

  #close(reason: string): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    if (reason === "OK") {
      this.#stream?.end();
      this.#session?.close();
    } else {
      this.#resetSocket();
    }
    this.#options.onClose(reason);
  }

  #resetSocket(): void {
    // A connection that is not open yet has nothing queued, and cannot be reset.
    if (this.#socket?.connecting) this.#socket.destroy();
    else this.#socket?.resetAndDestroy();
    this.#session?.destroy();
  }
}

function connected(socket: net.Socket): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.once("connect", resolve);
    // Stays for the connection's whole life: an error without a listener would end the process.
    socket.on("error", reject);
    socket.once("close", () => reject(new Error("closed")));
  });
}

/** A code where there is one: it repeats nothing that was sent. A stream that is cancelled has its session's reason. */
function reasonOf(error: unknown): string {
  const { code, message, cause } = error as NodeJS.ErrnoException;
  return cause instanceof Error ? reasonOf(cause) : (code ?? message);
}

/** By their numbers in the gRPC protocol. */
const statusNames = [
  "OK",
  "CANCELLED",
  "UNKNOWN",
  "INVALID_ARGUMENT",
  "DEADLINE_EXCEEDED",
  "NOT_FOUND",
  "ALREADY_EXISTS",
  "PERMISSION_DENIED",
  "RESOURCE_EXHAUSTED",
  "FAILED_PRECONDITION",
  "ABORTED",
  "OUT_OF_RANGE",
  "UNIMPLEMENTED",
  "INTERNAL",
  "UNAVAILABLE",
  "DATA_LOSS",
  "UNAUTHENTICATED",
];
