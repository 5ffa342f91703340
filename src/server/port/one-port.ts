import net from "node:net";
import type { TakeStream } from "../../rpc/hot/hot-grpc.ts";
import { type Connections, defaultPatience, lookEveryMs, type Patience } from "./connections.ts";
import { type Http1Options, Http1Server } from "./http1-server.ts";
import { Http2Connections } from "./http2-connections.ts";
import { type Crowd, leavingMax, turnAway } from "./turn-away.ts";

/** What every HTTP/2 client says first; nothing in HTTP/1.1 begins like it. */
const preface = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
const idleSweepMs = 50;

export interface OnePortOptions extends Http1Options {
  /** Is offered every HTTP/2 stream first. */
  readonly takeStream?: TakeStream;
  readonly patience?: Patience;
  /** Absent: everybody is let in. */
  readonly crowd?: Crowd;
}

/** One TCP port for HTTP/1.1 and cleartext HTTP/2: the first bytes of a connection decide. */
export class OnePort {
  readonly #server: net.Server;
  readonly #patience: Patience;
  readonly #http1: Http1Server;
  readonly #http2: Connections;
  readonly #all: readonly Connections[];
  readonly #sockets = new Set<net.Socket>();
  /** Those that have not said enough to tell what they speak. */
  readonly #undecided = new Set<net.Socket>();
  readonly #looking: NodeJS.Timeout;

  constructor(options: OnePortOptions) {
    const { listener, takeStream, guard, patience = defaultPatience, crowd } = options;
    this.#patience = patience;
    this.#http1 = new Http1Server(options, patience);
    this.#http2 = new Http2Connections(listener, takeStream, guard, patience);
    this.#all = [this.#http1, this.#http2];
    const look = () => {
      for (const connections of this.#all) connections.look();
    };
    this.#looking = setInterval(look, lookEveryMs(patience)).unref();
    this.#server = net.createServer({ noDelay: true }, (socket) => {
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
    const closed = new Promise((resolve) => this.#server.close(resolve));
    for (const socket of this.#undecided) socket.destroy();
    const closeIdle = () => {
      for (const connections of this.#all) connections.closeIdle();
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

  /** Reads until it is clear what the client speaks, then hands the connection over with what was read. */
  #receive(socket: net.Socket): void {
    this.#sockets.add(socket);
    this.#undecided.add(socket);
    socket.on("close", () => {
      this.#sockets.delete(socket);
      this.#undecided.delete(socket);
    });
    const drop = () => socket.destroy();
    socket.setTimeout(this.#patience.firstBytesMs, drop);
    let seen: Buffer = Buffer.alloc(0);
    const onData = (chunk: Buffer) => {
      seen = seen.length === 0 ? chunk : Buffer.concat([seen, chunk]);
      const compared = Math.min(seen.length, preface.length);
      const looksLikeHttp2 = seen.subarray(0, compared).equals(preface.subarray(0, compared));
      if (looksLikeHttp2 && compared < preface.length) return;
      this.#undecided.delete(socket);
      socket.off("data", onData).setTimeout(0).removeAllListeners("timeout");
      (looksLikeHttp2 ? this.#http2 : this.#http1).serve(socket, seen);
    };
    socket.on("data", onData);
  }
}
