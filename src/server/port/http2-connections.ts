import type http from "node:http";
import http2 from "node:http2";
import type { Socket } from "node:net";
import type { StreamListener, TakeStream } from "../../rpc/hot/hot-grpc.ts";
import type { RequestListener } from "../../rpc/request-listener.ts";
import { type Connections, handTo, lookEveryMs, type Patience } from "./connections.ts";
import type { Guard } from "./guard.ts";

/** How long a stream has been looked at in vain. */
interface StreamWatch {
  /** Looks since it was opened, and since its client last took something of its answer. */
  looks: number;
  stuckLooks: number;
  pendingBytes: number;
}

/** HTTP/2 by Node's own server, which has no timeouts for streams. */
export class Http2Connections implements Connections {
  readonly #guard: Guard;
  readonly #server: http2.Http2Server;
  readonly #patience: Patience;
  readonly #sessions = new Set<http2.ServerHttp2Session>();
  readonly #streams = new Set<http2.ServerHttp2Stream>();
  /** Of streams that are open longer than most. */
  readonly #watches = new WeakMap<http2.ServerHttp2Stream, StreamWatch>();
  #isClosing = false;

  /** `takeStream` is offered every stream first. */
  constructor(listener: RequestListener, takeStream: TakeStream | undefined, guard: Guard, patience: Patience) {
    this.#guard = guard;
    this.#patience = patience;
    this.#server = http2.createServer({
      settings: { maxConcurrentStreams: 100, maxHeaderListSize: 16_384 },
      maxSessionMemory: 4,
    });
    guard.watch(this.#server);
    this.#server.on("session", (session) => this.#watchSession(session));
    this.#listen(listener);
    this.#offerStreams(takeStream);
  }

  serve(socket: Socket, seen: Buffer): void {
    handTo(this.#server, socket, seen);
  }

  startClosing(): void {
    this.#isClosing = true;
    for (const session of this.#sessions) session.close();
  }

  /** A session that is closing ends with its last stream. */
  closeIdle(): void {}

  look(): void {
    const { requestMs, answerMs } = this.#patience;
    const everyMs = lookEveryMs(this.#patience);
    for (const stream of this.#streams) {
      const { writableLength } = stream;
      const watch = this.#watches.get(stream) ?? { looks: 0, stuckLooks: 0, pendingBytes: 0 };
      this.#watches.set(stream, watch);
      watch.looks++;
      // A stream may be silent, as one that watches our health is; but an answer that nobody takes stays in memory.
      watch.stuckLooks = writableLength > 0 && writableLength === watch.pendingBytes ? watch.stuckLooks + 1 : 0;
      watch.pendingBytes = writableLength;
      const isLate = !stream.readableEnded && watch.looks * everyMs > requestMs;
      if (isLate || watch.stuckLooks * everyMs > answerMs) stream.close(http2.constants.NGHTTP2_CANCEL);
    }
  }

  #watchSession(session: http2.ServerHttp2Session): void {
    this.#guard.watch(session);
    this.#sessions.add(session);
    session.on("close", () => this.#sessions.delete(session));
    session.on("error", () => session.destroy());
    session.setTimeout(this.#patience.idleMs, () => {
      const isUsed = [...this.#streams].some((stream) => stream.session === session);
      // A frame that stays half sent would keep `close` waiting for the rest of it.
      if (isUsed) session.close();
      else session.destroy();
    });
    if (this.#isClosing) session.close();
  }

  #listen(listener: RequestListener): void {
    const onRequest = (req: http2.Http2ServerRequest, res: http2.Http2ServerResponse) => {
      // The compatibility API makes one look like the other.
      listener(req as unknown as http.IncomingMessage, res as unknown as http.ServerResponse);
    };
    // All three events bring a request; Node would answer the last two without a body.
    for (const event of ["request", "checkExpectation", "connect"]) this.#server.on(event, onRequest);
  }

  /** The compatibility API hears of streams by one listener, which then gets only those that are left. */
  #offerStreams(takeStream: TakeStream | undefined): void {
    const [compat, ...others] = this.#server.listeners("stream") as StreamListener[];
    if (compat === undefined || others.length > 0) throw new Error("node:http2 hands out streams in an unknown way");
    this.#server.off("stream", compat);
    const toCompat: StreamListener = (...stream) => compat.apply(this.#server, stream);
    const streams = this.#streams;
    // One for all: what hangs on a stream is carried along by the garbage collector.
    const forget = function (this: http2.ServerHttp2Stream): void {
      streams.delete(this);
    };
    this.#server.on("stream", (stream, headers, flags, rawHeaders) => {
      this.#guard.watch(stream);
      streams.add(stream);
      stream.on("close", forget);
      const isTaken = takeStream?.(stream, headers, flags, rawHeaders, toCompat) ?? false;
      if (!isTaken) toCompat(stream, headers, flags, rawHeaders);
    });
  }
}
