import type { Socket } from "node:net";

/** The bound on open connections, and what those beyond it are told. */
export interface Crowd {
  /** Open connections at most. */
  readonly connectionsMax: number;
  /** A whole HTTP/1.1 response for those beyond. */
  readonly response: () => string;
  readonly onTurnedAway: () => void;
}

/** Connections that may be on their way out; any more are closed without a word. */
export const leavingMax = 1000;
/** How long a client may take to say what it speaks and to hear that it must leave. */
const leaveMs = 1000;

/** Tells a client that there is no room, and closes: without a parser, a session or anything else that a served one costs. */
export function turnAway(socket: Socket, { response, onTurnedAway }: Crowd): void {
  onTurnedAway();
  const impatient = setTimeout(() => socket.destroy(), leaveMs);
  socket.on("close", () => clearTimeout(impatient));
  socket.once("data", (chunk: Buffer) => {
    socket.end(chunk.toString("latin1", 0, 3) === "PRI" ? goAway : response());
    // The rest is read and dropped: closing upon what was not read would take the answer back.
    socket.resume();
  });
}

const settingsFrame = [0, 0, 0, 4, 0, 0, 0, 0, 0];
/** Of all codes the one that gRPC clients take for unavailable. */
const refusedStream = 7;
/** Its last stream is 0: nothing was done for the client, so whatever it has sent it may send elsewhere. */
const goAwayFrame = [0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, refusedStream];
const goAway = Buffer.from([...settingsFrame, ...goAwayFrame]);
