import type http from "node:http";
import http2 from "node:http2";
import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import type { TakeStream } from "../../rpc/fast-path/hot-grpc.ts";
import { headersBytesMax } from "../../rpc/http1-response.ts";
import type { RequestListener } from "../../rpc/request-listener.ts";
import { askForBody } from "./ask-for-body.ts";
import { type Connections, sweepEveryMs, type Timeouts, transferTo } from "./connections.ts";
import type { Guard } from "./guard.ts";

/** A stream as Node hands it out. */
type StreamListener = (
  stream: http2.ServerHttp2Stream,
  headers: http2.IncomingHttpHeaders,
  flags: number,
  rawHeaders: string[],
) => void;

/** How long a stream is open, and how long its answer is not taken; counted in calls of `sweep`. */
interface StreamProgress {
  /** Since the stream was opened. */
  sweeps: number;
  /** Consecutive sweeps in which the client has read nothing of its answer. */
  stuckSweeps: number;
  pendingBytes: number;
}

/** What a session over TLS has sent until the last sweep, and the consecutive sweeps since then without a byte of it. */
interface SessionProgress {
  readonly socket: TLSSocket;
  bytesRead: number;
  silentSweeps: number;
}

/** Memory for a stream beside its headers and body: Node's objects and ours. Measured, rounded. */
const streamBytes = 8192;
/** Bytes in incomplete requests, over all connections of this thread. Their bodies have a separate bound. */
const incompleteBytesMax = 8 * 1024 * 1024;
/** The bytes are counted again after so many new ones: counting takes longer than opening a stream. */
const incompleteStepBytes = 512 * 1024;
/** Bytes in answers that clients do not read, over all connections of this thread. */
const untakenBytesMax = 16 * 1024 * 1024;
/** Bytes of refused streams on one connection. Above this the connection is closed. */
const refusedBytesMax = 1024 * 1024;
/** At shutdown, a session that has not opened a stream is closed after so many calls of `closeIdle`. */
const unusedSweepsMax = 5;

/** HTTP/2 by Node's own server. Adds what that lacks: timeouts for streams, and bounds over all sessions. */
export class Http2Connections implements Connections {
  readonly #guard: Guard;
  readonly #server: http2.Http2Server;
  readonly #timeouts: Timeouts;
  readonly #onRefused: () => void;
  readonly #sessions = new Set<http2.ServerHttp2Session>();
  /** The connection that is being passed to Node. */
  #serving: Socket | undefined;
  readonly #socketOf = new WeakMap<http2.Http2Session, Socket>();
  /** Only the sessions over TLS: others need no look at each sweep. */
  readonly #secured = new Map<http2.ServerHttp2Session, SessionProgress>();
  /** Sessions that have not sent their settings yet, with the number of sweeps since they began. */
  readonly #awaitingSettings = new Map<http2.ServerHttp2Session, number>();
  /** Sessions that have not opened a stream yet, with the number of `closeIdle` calls since they began. */
  readonly #unused = new Map<http2.ServerHttp2Session, number>();
  /** Open streams with the bytes of their headers, the oldest first. */
  readonly #streams = new Map<http2.ServerHttp2Stream, number>();
  /** Total bytes of the refused streams of each session. */
  readonly #refusedBytes = new WeakMap<http2.Http2Session, number>();
  /** Bytes of the streams opened since `#limitIncomplete` last counted. */
  #openedBytes = 0;
  /** Only for streams that were open during a sweep. Most streams close before one. */
  readonly #progress = new WeakMap<http2.ServerHttp2Stream, StreamProgress>();
  #isClosing = false;

  /** `takeStream` is offered every stream first. `onRefused` is called for each stream refused for lack of room. */
  constructor(
    listener: RequestListener,
    takeStream: TakeStream | undefined,
    guard: Guard,
    timeouts: Timeouts,
    onRefused: () => void = () => {},
  ) {
    this.#guard = guard;
    this.#timeouts = timeouts;
    this.#onRefused = onRefused;
    this.#server = http2.createServer({
      settings: { maxConcurrentStreams: 100, maxHeaderListSize: headersBytesMax },
      maxSessionMemory: 4,
    });
    guard.watch(this.#server);
    this.#server.on("session", (session) => this.#watchSession(session));
    this.#listen(listener);
    this.#offerStreams(takeStream);
  }

  serve(socket: Socket, seen: Buffer): void {
    this.#serving = socket;
    transferTo(this.#server, socket, seen);
    this.#serving = undefined;
  }

  /** The connection that this session was given. */
  socketOf(session: http2.Http2Session): Socket | undefined {
    return this.#socketOf.get(session);
  }

  startShutdown(): void {
    this.#isClosing = true;
    // A session that has just begun may have requests on the way: its client cannot know yet that it should leave.
    for (const session of this.#sessions) if (!this.#unused.has(session)) session.close();
  }

  /** Sessions with streams need nothing here: `session.close()` ends them after their last stream. */
  closeIdle(): void {
    for (const [session, sweeps] of this.#unused) {
      this.#unused.set(session, sweeps + 1);
      if (sweeps >= unusedSweepsMax) this.#guard.run(session, () => session.close());
    }
  }

  sweep(): void {
    for (const stream of this.#streams.keys()) this.#guard.run(stream, () => this.#sweepStream(stream));
    this.#boundUntaken();
    for (const [session, progress] of this.#secured) {
      this.#guard.run(session, () => this.#sweepSecured(session, progress));
    }
    for (const [session, sweeps] of this.#awaitingSettings) {
      this.#awaitingSettings.set(session, sweeps + 1);
      const isLate = (sweeps + 1) * sweepEveryMs(this.#timeouts) > this.#timeouts.firstBytesMs;
      if (isLate) this.#guard.run(session, () => session.destroy());
    }
  }

  /**
   * Over TLS, a silent client is pinged, and disconnected if it stays silent. If a connection is reset while Node encrypts
   * an answer, Node may not report it and stop reading: the session would stay until its idle timeout.
   */
  #sweepSecured(session: http2.ServerHttp2Session, progress: SessionProgress): void {
    if (session.destroyed) return;
    const { socket } = progress;
    progress.silentSweeps = socket.bytesRead === progress.bytesRead ? progress.silentSweeps + 1 : 0;
    progress.bytesRead = socket.bytesRead;
    const sweepsMax = Math.ceil(this.#timeouts.answerMs / sweepEveryMs(this.#timeouts));
    if (progress.silentSweeps === sweepsMax) session.ping(ignore);
    // Destroying the session would wait for its writes.
    else if (progress.silentSweeps > 2 * sweepsMax) socket.destroy();
  }

  #sweepStream(stream: http2.ServerHttp2Stream): void {
    const { requestMs, answerMs } = this.#timeouts;
    const everyMs = sweepEveryMs(this.#timeouts);
    const { writableLength } = stream;
    const progress = this.#progress.get(stream) ?? { sweeps: 0, stuckSweeps: 0, pendingBytes: 0 };
    this.#progress.set(stream, progress);
    progress.sweeps++;
    // A stream may be silent, for example a health watch. But an answer that the client does not read stays in memory.
    progress.stuckSweeps =
      writableLength > 0 && writableLength === progress.pendingBytes ? progress.stuckSweeps + 1 : 0;
    progress.pendingBytes = writableLength;
    const isLate = !stream.readableEnded && progress.sweeps * everyMs > requestMs;
    if (isLate || progress.stuckSweeps * everyMs > answerMs) stream.close(http2.constants.NGHTTP2_CANCEL);
  }

  /** While unread answers exceed their bound, closes the oldest streams that made no progress since the last sweep. */
  #boundUntaken(): void {
    let bytes = 0;
    for (const stream of this.#streams.keys()) bytes += stream.writableLength;
    for (const stream of this.#streams.keys()) {
      if (bytes <= untakenBytesMax) return;
      if (!this.#progress.get(stream)?.stuckSweeps) continue;
      bytes -= stream.writableLength;
      this.#guard.run(stream, () => stream.close(http2.constants.NGHTTP2_ENHANCE_YOUR_CALM));
    }
  }

  #watchSession(session: http2.ServerHttp2Session): void {
    this.#guard.watch(session);
    this.#sessions.add(session);
    // Node creates the session while it is given the connection.
    const socket = this.#serving;
    if (socket !== undefined) this.#socketOf.set(session, socket);
    if (socket instanceof TLSSocket) this.#secured.set(session, { socket, bytesRead: -1, silentSweeps: 0 });
    this.#awaitingSettings.set(session, 0);
    this.#unused.set(session, 0);
    session.on("close", () => {
      this.#sessions.delete(session);
      this.#secured.delete(session);
      this.#awaitingSettings.delete(session);
      this.#unused.delete(session);
    });
    session.on("error", () => session.destroy());
    session.once("remoteSettings", () => this.#awaitingSettings.delete(session));
    session.once("stream", () => {
      this.#unused.delete(session);
      // Later, so that streams which came in the same packet are opened first.
      if (this.#isClosing) setImmediate(() => this.#guard.run(session, () => session.close()));
    });
    session.setTimeout(this.#timeouts.idleMs, () => {
      const isUsed = [...this.#streams.keys()].some((stream) => stream.session === session);
      // `close` would wait for the rest of a frame that was only partly sent.
      if (isUsed) session.close();
      else session.destroy();
    });
  }

  #listen(listener: RequestListener): void {
    const onRequest = (req: http2.Http2ServerRequest, res: http2.Http2ServerResponse) => {
      // Request and response emit some events themselves, later than their stream.
      this.#guard.watch(req);
      this.#guard.watch(res);
      // The compatibility API gives HTTP/2 requests the shape of HTTP/1.1 requests.
      listener(req as unknown as http.IncomingMessage, res as unknown as http.ServerResponse);
    };
    // All three events bring a request; Node would answer the last two without a body.
    for (const event of ["request", "checkExpectation", "connect"]) this.#server.on(event, onRequest);
    this.#server.on("checkContinue", (req: http2.Http2ServerRequest, res: http2.Http2ServerResponse) => {
      askForBody(req as unknown as http.IncomingMessage, res as unknown as http.ServerResponse);
      onRequest(req, res);
    });
  }

  /** Replaces Node's stream listener (the compatibility API) by one that calls it only for streams not taken before. */
  #offerStreams(takeStream: TakeStream | undefined): void {
    const [compat, ...others] = this.#server.listeners("stream") as StreamListener[];
    if (compat === undefined || others.length > 0) throw new Error("node:http2 hands out streams in an unknown way");
    this.#server.off("stream", compat);
    const streams = this.#streams;
    // One function for all streams: a closure for each would cost the garbage collector time.
    const onClose = function (this: http2.ServerHttp2Stream): void {
      streams.delete(this);
    };
    this.#server.on("stream", (stream, headers, flags, rawHeaders) => {
      this.#guard.watch(stream);
      // A client that disconnects early is not a fault of the service: there is nothing to report.
      stream.on("error", ignore);
      // The client may already have reset it: both frames can come in one packet.
      if (stream.closed || stream.destroyed) return;
      const headerBytes = lengthOf(rawHeaders);
      streams.set(stream, headerBytes);
      stream.on("close", onClose);
      this.#openedBytes += costOf(headerBytes);
      if (this.#openedBytes > incompleteStepBytes) this.#limitIncomplete();
      const isTaken = takeStream?.(stream, headers, flags) ?? false;
      if (!isTaken) compat.call(this.#server, stream, headers, flags, rawHeaders);
    });
  }

  /** While incomplete requests exceed their bound, refuses the oldest of them. */
  #limitIncomplete(): void {
    this.#openedBytes = 0;
    let bytes = 0;
    for (const [stream, headerBytes] of this.#streams) if (isIncomplete(stream)) bytes += costOf(headerBytes);
    for (const [stream, headerBytes] of this.#streams) {
      if (bytes <= incompleteBytesMax) return;
      if (!isIncomplete(stream)) continue;
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

/** Whether nothing was done for the request yet: then refusing is safe, the client may send it again. */
function isIncomplete(stream: http2.ServerHttp2Stream): boolean {
  return !stream.readableEnded && !stream.headersSent && !stream.closed;
}

/** Headers cost several times their length, because Node frees them long after their stream has ended. Measured. */
function costOf(headerBytes: number): number {
  return streamBytes + 4 * headerBytes;
}

function lengthOf(texts: readonly string[]): number {
  let length = 0;
  for (const text of texts) length += text.length;
  return length;
}

function ignore(): void {}
