import type http from "node:http";
import http2 from "node:http2";
import type { Socket } from "node:net";
import type { TakeStream } from "../../rpc/hot/hot-grpc.ts";
import type { RequestListener } from "../../rpc/request-listener.ts";
import { type Connections, handTo, lookEveryMs, type Patience } from "./connections.ts";
import type { Guard } from "./guard.ts";

/** A stream as Node hands it out. */
type StreamListener = (
  stream: http2.ServerHttp2Stream,
  headers: http2.IncomingHttpHeaders,
  flags: number,
  rawHeaders: string[],
) => void;

/** How long a stream is open, and how long its answer is not taken; counted in calls of `look`. */
interface StreamWatch {
  /** Since it was opened, and since its client last took something of its answer. */
  looks: number;
  stuckLooks: number;
  pendingBytes: number;
}

/** What a stream costs beside its headers and its body, roughly: Node's objects and ours. Measured. */
const streamBytes = 8192;
/** In requests that are not whole yet, on all connections of this thread. Their bodies have a bound of their own. */
const halfOpenBytesMax = 8 * 1024 * 1024;
/** What may be opened before it is counted again what all of them hold: counting takes longer than opening one. */
const halfOpenStepBytes = 512 * 1024;
/** In answers that their clients do not take, on all connections of this thread. */
const untakenBytesMax = 16 * 1024 * 1024;
/** Of what was refused on one connection. Beyond it the connection is closed, so that no more has to be refused. */
const refusedBytesMax = 1024 * 1024;
/** How long a session that has asked for nothing yet may go on when the server closes, in calls of `closeIdle`. */
const unusedSweepsMax = 5;

/** HTTP/2 by Node's own server, which has no timeouts for streams, and no bound over all sessions. */
export class Http2Connections implements Connections {
  readonly #guard: Guard;
  readonly #server: http2.Http2Server;
  readonly #patience: Patience;
  readonly #onRefused: () => void;
  readonly #sessions = new Set<http2.ServerHttp2Session>();
  /** Sessions that have not sent their settings, with the calls of `look` since they began. */
  readonly #unsettled = new Map<http2.ServerHttp2Session, number>();
  /** Sessions that have not opened a stream, with the calls of `closeIdle` since they began. */
  readonly #unused = new Map<http2.ServerHttp2Session, number>();
  /** Open streams with the bytes of their headers, the oldest first. */
  readonly #streams = new Map<http2.ServerHttp2Stream, number>();
  /** What the refused streams of a session cost, added up. */
  readonly #refusedBytes = new WeakMap<http2.Http2Session, number>();
  /** What the streams cost that were opened since `#boundHalfOpen` last counted. */
  #openedBytes = 0;
  /** Of streams that were open at a call of `look`, which most never are. */
  readonly #watches = new WeakMap<http2.ServerHttp2Stream, StreamWatch>();
  #isClosing = false;

  /** `takeStream` is offered every stream first. `onRefused` is told of streams that were refused as there was no room. */
  constructor(
    listener: RequestListener,
    takeStream: TakeStream | undefined,
    guard: Guard,
    patience: Patience,
    onRefused: () => void = () => {},
  ) {
    this.#guard = guard;
    this.#patience = patience;
    this.#onRefused = onRefused;
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
    // What is on its way on a session that has just begun is served: its client cannot know yet that it should leave.
    for (const session of this.#sessions) if (!this.#unused.has(session)) session.close();
  }

  /** A session that is closing ends with its last stream. */
  closeIdle(): void {
    for (const [session, sweeps] of this.#unused) {
      this.#unused.set(session, sweeps + 1);
      if (sweeps >= unusedSweepsMax) this.#guard.run(session, () => session.close());
    }
  }

  look(): void {
    for (const stream of this.#streams.keys()) this.#guard.run(stream, () => this.#lookAt(stream));
    this.#boundUntaken();
    for (const [session, looks] of this.#unsettled) {
      this.#unsettled.set(session, looks + 1);
      const isLate = (looks + 1) * lookEveryMs(this.#patience) > this.#patience.firstBytesMs;
      if (isLate) this.#guard.run(session, () => session.destroy());
    }
  }

  #lookAt(stream: http2.ServerHttp2Stream): void {
    const { requestMs, answerMs } = this.#patience;
    const everyMs = lookEveryMs(this.#patience);
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

  /** Cuts off the oldest answers of which nothing was taken since the last look, until all hold no more than they may. */
  #boundUntaken(): void {
    let bytes = 0;
    for (const stream of this.#streams.keys()) bytes += stream.writableLength;
    for (const stream of this.#streams.keys()) {
      if (bytes <= untakenBytesMax) return;
      if (!this.#watches.get(stream)?.stuckLooks) continue;
      bytes -= stream.writableLength;
      this.#guard.run(stream, () => stream.close(http2.constants.NGHTTP2_ENHANCE_YOUR_CALM));
    }
  }

  #watchSession(session: http2.ServerHttp2Session): void {
    this.#guard.watch(session);
    this.#sessions.add(session);
    this.#unsettled.set(session, 0);
    this.#unused.set(session, 0);
    session.on("close", () => {
      this.#sessions.delete(session);
      this.#unsettled.delete(session);
      this.#unused.delete(session);
    });
    session.on("error", () => session.destroy());
    session.once("remoteSettings", () => this.#unsettled.delete(session));
    session.once("stream", () => {
      this.#unused.delete(session);
      // Once the others that came in the same packet are open too.
      if (this.#isClosing) setImmediate(() => this.#guard.run(session, () => session.close()));
    });
    session.setTimeout(this.#patience.idleMs, () => {
      const isUsed = [...this.#streams.keys()].some((stream) => stream.session === session);
      // A frame that stays half sent would keep `close` waiting for the rest of it.
      if (isUsed) session.close();
      else session.destroy();
    });
  }

  #listen(listener: RequestListener): void {
    const onRequest = (req: http2.Http2ServerRequest, res: http2.Http2ServerResponse) => {
      // They emit some events by themselves, later than their stream does.
      this.#guard.watch(req);
      this.#guard.watch(res);
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
    const streams = this.#streams;
    // One for all: what hangs on a stream is carried along by the garbage collector.
    const forget = function (this: http2.ServerHttp2Stream): void {
      streams.delete(this);
    };
    this.#server.on("stream", (stream, headers, flags, rawHeaders) => {
      this.#guard.watch(stream);
      // A client that breaks off in the middle is not a fault of the service: there is nothing to report.
      stream.on("error", ignore);
      // Its client may have reset it before we hear of it: both frames can come in one packet.
      if (stream.closed || stream.destroyed) return;
      const headerBytes = lengthOf(rawHeaders);
      streams.set(stream, headerBytes);
      stream.on("close", forget);
      this.#openedBytes += costOf(headerBytes);
      if (this.#openedBytes > halfOpenStepBytes) this.#boundHalfOpen();
      const isTaken = takeStream?.(stream, headers, flags) ?? false;
      if (!isTaken) compat.call(this.#server, stream, headers, flags, rawHeaders);
    });
  }

  /** Refuses the oldest requests that are not whole yet, until all of them together hold no more than they may. */
  #boundHalfOpen(): void {
    this.#openedBytes = 0;
    let bytes = 0;
    for (const [stream, headerBytes] of this.#streams) if (isHalfOpen(stream)) bytes += costOf(headerBytes);
    for (const [stream, headerBytes] of this.#streams) {
      if (bytes <= halfOpenBytesMax) return;
      if (!isHalfOpen(stream)) continue;
      bytes -= costOf(headerBytes);
      this.#guard.run(stream, () => this.#refuse(stream, costOf(headerBytes)));
    }
  }

  #refuse(stream: http2.ServerHttp2Stream, bytes: number): void {
    const { session } = stream;
    this.#onRefused();
    stream.close(http2.constants.NGHTTP2_REFUSED_STREAM);
    if (session === undefined) return;
    const refusedBytes = (this.#refusedBytes.get(session) ?? 0) + bytes;
    this.#refusedBytes.set(session, refusedBytes);
    if (refusedBytes > refusedBytesMax) session.close();
  }
}

/** Whether nothing was done for it yet, so that it can be refused and its client may send it again. */
function isHalfOpen(stream: http2.ServerHttp2Stream): boolean {
  return !stream.readableEnded && !stream.headersSent && !stream.closed;
}

/** Headers weigh more than they are long: Node frees those of a stream long after it has ended. Measured. */
function costOf(headerBytes: number): number {
  return streamBytes + 4 * headerBytes;
}

function lengthOf(texts: readonly string[]): number {
  let length = 0;
  for (const text of texts) length += text.length;
  return length;
}

function ignore(): void {}
