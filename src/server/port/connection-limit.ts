import type { Socket } from "node:net";

/** The limit on open connections, and the answer to connections above it. */
export interface ConnectionLimit {
  /** Most open connections. */
  readonly connectionsMax: number;
  /**
   * Most open connections that are not trusted (see `OnePort.trust`). A new connection above this closes the oldest of
   * them, so that they cannot keep others out. Absent: they count like all others.
   */
  readonly strangersMax?: number;
  /** The complete HTTP/1.1 response to a connection above the limit. Not sent where TLS is spoken. */
  readonly response: () => string;
  readonly onRejected: () => void;
}

/** Connections above the limit that may be waiting for their answer. More than these are closed without an answer. */
export const rejectingMax = 1000;
/** How long a rejected client may take to send its first bytes and to read the answer. */
const rejectTimeoutMs = 1000;

/** Answers that there is no room, and closes. Cheap on purpose: no parser, no session. */
export function rejectConnection(socket: Socket, { response, onRejected }: ConnectionLimit): void {
  onRejected();
  const timer = setTimeout(() => socket.destroy(), rejectTimeoutMs);
  socket.on("close", () => clearTimeout(timer));
  socket.once("data", (chunk: Buffer) => {
    socket.end(chunk.toString("latin1", 0, 3) === "PRI" ? goAway : response());
    // The rest is read and dropped: closing with unread bytes sends a reset, and the client would lose the answer.
    socket.resume();
  });
}

const settingsFrame = [0, 0, 0, 4, 0, 0, 0, 0, 0];
/** The error code that gRPC clients turn into UNAVAILABLE. */
const refusedStream = 7;
/** Last stream 0 means that nothing was processed, so the client may send all its requests elsewhere. */
const goAwayFrame = [0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, refusedStream];
const goAway = Buffer.from([...settingsFrame, ...goAwayFrame]);
