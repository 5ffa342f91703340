import net from "node:net";
import { acceptWaiting, listenAt } from "../port/listening.ts";

/** Who serves connections. */
export interface ConnectionTaker {
  /** Resolves when the connection is the taker's; rejects if the taker has gone and has read nothing of it. */
  take(socket: net.Socket): Promise<void>;
}

/** Connections that wait while no taker is free. More are closed. */
const waitingMax = 1000;

/**
 * Accepts the connections of a port and hands them to takers, in turns. A taker gets the next one when it has taken the
 * last: one that hangs holds up one connection, and one that has gone leaves it to another. `node:cluster` does the same
 * but for the last point: what a worker had not taken when it died stays open, and nobody answers it.
 */
export class ConnectionDealer {
  readonly #server = net.createServer({ noDelay: true, pauseOnConnect: true }, (socket) => this.#add(socket));
  readonly #waiting: net.Socket[] = [];
  /** Those that have taken what they were given; the one that has waited longest first. */
  readonly #free: ConnectionTaker[] = [];
  readonly #removed = new WeakSet<ConnectionTaker>();
  #given = 0;
  #onAllGiven: (() => void) | undefined;

  /** Resolves to the bound port, or rejects. */
  listen(port: number, host: string): Promise<number> {
    return listenAt(this.#server, { port, host });
  }

  add(taker: ConnectionTaker): void {
    this.#free.push(taker);
    this.#deal();
  }

  /** It gets no more connections. */
  remove(taker: ConnectionTaker): void {
    this.#removed.add(taker);
    const at = this.#free.indexOf(taker);
    if (at >= 0) this.#free.splice(at, 1);
  }

  /** Stops listening. Resolves when all connections that had come are taken. */
  async close(): Promise<void> {
    await acceptWaiting(this.#server);
    // Not waited for: its connections are the takers'.
    this.#server.close();
    if (this.#waiting.length + this.#given > 0) await new Promise<void>((resolve) => (this.#onAllGiven = resolve));
  }

  #add(socket: net.Socket): void {
    // A client that leaves while it waits.
    socket.on("error", () => socket.destroy());
    if (this.#waiting.length >= waitingMax) socket.destroy();
    else this.#waiting.push(socket);
    this.#deal();
  }

  #deal(): void {
    while (this.#waiting.length > 0 && this.#free.length > 0) {
      void this.#give(this.#free.shift() as ConnectionTaker, this.#waiting.shift() as net.Socket);
    }
  }

  async #give(taker: ConnectionTaker, socket: net.Socket): Promise<void> {
    this.#given++;
    const isTaken = await taker.take(socket).then(
      () => true,
      () => false,
    );
    this.#given--;
    // The taker has its own handle of the connection, which stays open.
    if (isTaken) socket.destroy();
    else this.#waiting.unshift(socket);
    if (isTaken && !this.#removed.has(taker)) this.#free.push(taker);
    this.#deal();
    if (this.#waiting.length + this.#given === 0) this.#onAllGiven?.();
  }
}
