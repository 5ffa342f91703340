import type { EventEmitter } from "node:events";
import type { Socket } from "node:net";

/** One way to serve connections. */
export interface Connections {
  /** Serves a connection. `seen` are the bytes that were already read from it. */
  serve(socket: Socket, seen: Buffer): void;
  /** Starts a graceful shutdown: from now on the next answer on each connection also tells the client to leave. */
  startShutdown(): void;
  /** Closes connections without a request under way. */
  closeIdle(): void;
  /**
   * Closes connections and streams whose request or response has been incomplete for too long. Called every
   * `sweepEveryMs`: one timer for each connection or stream would cost more than one pass over all of them.
   */
  sweep(): void;
}

/** How long a client may take for each step. */
export interface Timeouts {
  /** To send its first bytes. */
  readonly firstBytesMs: number;
  /** To send the headers of an HTTP/1.1 request. */
  readonly headersMs: number;
  /** To send a whole request. */
  readonly requestMs: number;
  /** To read the next part of a response. More than for a request, so that a slow sender can still read its error. */
  readonly answerMs: number;
  /** To start the next request on an HTTP/1.1 connection. */
  readonly keepAliveMs: number;
  /** To send anything on an HTTP/2 connection. */
  readonly idleMs: number;
}

export const defaultTimeouts: Timeouts = {
  firstBytesMs: 10_000,
  headersMs: 10_000,
  requestMs: 30_000,
  answerMs: 60_000,
  // Longer than most load balancers keep a connection open, so that the balancer closes it first, never we.
  keepAliveMs: 75_000,
  idleMs: 600_000,
};

/** Often enough for the shortest timeout, which is the one for headers. */
export function sweepEveryMs({ headersMs }: Timeouts): number {
  return Math.min(1000, headersMs);
}

/** Passes the connection to one of Node's servers, after putting the bytes that were read back into it. */
export function transferTo(server: EventEmitter, socket: Socket, seen: Buffer): void {
  socket.pause();
  socket.unshift(seen);
  server.emit("connection", socket);
  process.nextTick(() => socket.resume());
}
