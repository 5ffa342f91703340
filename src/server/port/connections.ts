import type { EventEmitter } from "node:events";
import type { Socket } from "node:net";

/** One way to serve connections. */
export interface Connections {
  /** Serves a connection from which these bytes have been read. */
  serve(socket: Socket, seen: Buffer): void;
  /** From now on clients are told to go elsewhere, along with the answer to what they asked. */
  startClosing(): void;
  /** Ends the connections on which nobody waits for an answer. */
  closeIdle(): void;
  /**
   * Ends what has been half sent, or half taken, for too long. Called every `lookEveryMs`: a timer for each connection or
   * stream would cost more than a look at all of them.
   */
  look(): void;
}

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

/** Often enough that headers which do not come are noticed about in time: theirs is the shortest time-out. */
export function lookEveryMs({ headersMs }: Patience): number {
  return Math.min(1000, headersMs);
}

/** Puts back the bytes that were read, and hands the connection to a server of Node's. */
export function handTo(server: EventEmitter, socket: Socket, seen: Buffer): void {
  socket.pause();
  socket.unshift(seen);
  server.emit("connection", socket);
  process.nextTick(() => socket.resume());
}
