import net from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { TakeStream } from "../../rpc/hot/hot-grpc.ts";
import { type Connections, defaultPatience, lookEveryMs, type Patience } from "./connections.ts";
import { type Http1Options, Http1Server } from "./http1-server.ts";
import { Http2Connections } from "./http2-connections.ts";
import { type Crowd, leavingMax, turnAway } from "./turn-away.ts";

/** What every HTTP/2 client says first; nothing in HTTP/1.1 begins like it. */
const preface = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
const idleSweepMs = 50;
/** How long a connection that has not said what it speaks may go on when the server closes, in times `idleSweepMs`. */
const undecidedSweepsMax = 5;
/** Connections that wait to be accepted, at most: the system keeps no more. */
const waitingMax = 511;
/** So many turns of the event loop in a row must bring no connection before the listener is closed. */
const quietTurnsMin = 5;

export interface OnePortOptions extends Http1Options {
  /** Is offered every HTTP/2 stream first. */
  readonly takeStream?: TakeStream;
  readonly patience?: Patience;
  /** Absent: everybody is let in. */
  readonly crowd?: Crowd;
  /** Told of every HTTP/2 stream that was refused as too many requests are half sent. */
  readonly onStreamRefused?: () => void;
}

/** One TCP port for HTTP/1.1 and cleartext HTTP/2: the first bytes of a connection decide. */
export class OnePort {
  readonly #server: net.Server;
  readonly #http1: Http1Server;
  readonly #http2: Connections;
  readonly #all: readonly Connections[];
  readonly #sockets = new Set<net.Socket>();
  /**
   * Connections that have not said enough to tell what they speak, with the calls of `#ageUndecided` since they came or, once
   * the server closes, since then.
   */
  readonly #undecided = new Map<net.Socket, number>();
  #accepted = 0;
  readonly #looking: NodeJS.Timeout;

  constructor(options: OnePortOptions) {
    const { listener, takeStream, guard, patience = defaultPatience, crowd } = options;
    this.#http1 = new Http1Server(options, patience);
    this.#http2 = new Http2Connections(listener, takeStream, guard, patience, options.onStreamRefused);
    this.#all = [this.#http1, this.#http2];
    const look = () => {
      for (const connections of this.#all) connections.look();
      this.#ageUndecided(patience.firstBytesMs / lookEveryMs(patience));
    };
    this.#looking = setInterval(look, lookEveryMs(patience)).unref();
    this.#server = net.createServer({ noDelay: true }, (socket) => {
      this.#accepted++;
      guard.watch(socket);
      // For as long as the connection lives: Node takes its own listener away where it gives a connection up.
      socket.on("error", () => socket.destroy());
      if (crowd !== undefined && this.#sockets.size >= crowd.connectionsMax) turnAway(socket, crowd);
      else this.#receive(socket);
    });
    guard.watch(this.#server);
    if (crowd !== undefined) {
      this.#server.maxConnections = crowd.connectionsMax + leavingMax;
      this.#server.on("drop", crowd.onTurnedAway);
    }
  }

  /** Open connections. */
  get connections(): number {
    return this.#sockets.size;
  }

  /** Resolves to the port that was bound; rejects when it cannot be. Those who reuse a port share its connections. */
  listen(port: number, host: string, { reusePort = false } = {}): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen({ port, host, reusePort }, () => {
        this.#server.off("error", reject);
        resolve((this.#server.address() as net.AddressInfo).port);
      });
    });
  }

  /** From now on clients are told to go elsewhere, along with the answer to what they asked. */
  startClosing(): void {
    for (const connections of this.#all) connections.startClosing();
  }

  /** Stops listening and resolves when everything under way has been answered; what takes longer is cut off. */
  async close(graceMs: number): Promise<void> {
    this.startClosing();
    await this.#acceptWaiting();
    const closed = new Promise((resolve) => this.#server.close(resolve));
    // From here on they are counted anew.
    for (const socket of this.#undecided.keys()) this.#undecided.set(socket, 0);
    const closeIdle = () => {
      for (const connections of this.#all) connections.closeIdle();
      this.#ageUndecided(undecidedSweepsMax);
    };
    // Again and again: a connection whose answer was on its way a moment ago is idle now.
    const sweep = setInterval(closeIdle, idleSweepMs);
    const cutOff = setTimeout(() => {
      for (const socket of this.#sockets) socket.destroy();
    }, graceMs);
    closeIdle();
    await closed;
    clearInterval(sweep);
    clearTimeout(cutOff);
    clearInterval(this.#looking);
    this.#http1.stop();
  }

  /**
   * Accepts the connections that wait to be. The system resets those that still wait when a listener is closed, and one is
   * accepted in each turn of the event loop. So no more than one is let wait from now on, and the listener is closed when
   * some turns have found none. A client that comes meanwhile tries again by itself, and is refused then.
   */
  async #acceptWaiting(): Promise<void> {
    // There is no public way to change this number for a server that listens.
    const { _handle: handle } = this.#server as unknown as { _handle: { listen(backlog: number): unknown } | null };
    handle?.listen(0);
    // To the end of a turn that may have begun long ago.
    await nextTurn();
    let quietTurns = 0;
    // No more turns than connections can wait: those that come meanwhile must not keep a server from stopping.
    for (let turn = 0; turn < waitingMax && quietTurns < quietTurnsMin; turn++) {
      const before = this.#accepted;
      await nextTurn();
      quietTurns = this.#accepted === before ? quietTurns + 1 : 0;
    }
  }

  /** Ends those that have taken longer than this to say what they speak. A deadline: saying a little does not extend it. */
  #ageUndecided(sweepsMax: number): void {
    for (const [socket, sweeps] of this.#undecided) {
      if (sweeps >= sweepsMax) socket.destroy();
      else this.#undecided.set(socket, sweeps + 1);
    }
  }

  /** Reads until it is clear what the client speaks, then hands the connection over with what was read. */
  #receive(socket: net.Socket): void {
    this.#sockets.add(socket);
    this.#undecided.set(socket, 0);
    socket.on("close", () => {
      this.#sockets.delete(socket);
      this.#undecided.delete(socket);
    });
    let seen: Buffer = Buffer.alloc(0);
    const onData = (chunk: Buffer) => {
      seen = seen.length === 0 ? chunk : Buffer.concat([seen, chunk]);
      const compared = Math.min(seen.length, preface.length);
      const looksLikeHttp2 = seen.subarray(0, compared).equals(preface.subarray(0, compared));
      if (looksLikeHttp2 && compared < preface.length) return;
      this.#undecided.delete(socket);
      socket.off("data", onData);
      (looksLikeHttp2 ? this.#http2 : this.#http1).serve(socket, seen);
    };
    socket.on("data", onData);
  }
}
