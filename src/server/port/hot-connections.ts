import type { Socket } from "node:net";
import type { HotConnection, TakeConnection } from "../../rpc/hot/hot-connection.ts";
import { type Connections, lookEveryMs, type Patience } from "./connections.ts";

/** HTTP/1.1 by hand, until something comes that is for another server: it gets the connection then. */
export class HotConnections implements Connections {
  readonly #take: TakeConnection;
  readonly #others: Connections;
  readonly #patience: Patience;
  readonly #connections = new Map<Socket, HotConnection>();
  #isClosing = false;

  constructor(take: TakeConnection, others: Connections, patience: Patience) {
    this.#take = take;
    this.#others = others;
    this.#patience = patience;
  }

  serve(socket: Socket, seen: Buffer): void {
    const forget = () => this.#connections.delete(socket);
    socket.on("close", forget);
    const connection = this.#take(socket, (rest) => {
      forget();
      socket.off("close", forget);
      this.#others.serve(socket, rest);
    });
    this.#connections.set(socket, connection);
    if (this.#isClosing) connection.startClosing();
    connection.receive(seen);
  }

  startClosing(): void {
    this.#isClosing = true;
    for (const connection of this.#connections.values()) connection.startClosing();
  }

  closeIdle(): void {
    for (const [socket, connection] of this.#connections) if (connection.isIdle) socket.destroy();
  }

  look(): void {
    const { answerMs, keepAliveMs } = this.#patience;
    for (const [socket, connection] of this.#connections) {
      const patienceMs = socket.writableLength > 0 ? answerMs : keepAliveMs;
      if (connection.countQuietLook() * lookEveryMs(this.#patience) > patienceMs) socket.destroy();
    }
  }
}
