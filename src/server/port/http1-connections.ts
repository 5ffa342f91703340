import http from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { RequestListener } from "../../rpc/request-listener.ts";
import { type Connections, handTo, lookEveryMs, type Patience } from "./connections.ts";
import type { Guard } from "./guard.ts";

/** HTTP/1.1 by Node's own server. */
export class Http1Connections implements Connections {
  readonly #guard: Guard;
  readonly #server: http.Server;
  readonly #unanswered = new Set<http.ServerResponse>();
  #isClosing = false;

  constructor(listener: RequestListener, malformed: (error: Error) => string, guard: Guard, patience: Patience) {
    this.#guard = guard;
    this.#server = http.createServer({
      headersTimeout: patience.headersMs,
      requestTimeout: patience.requestMs,
      connectionsCheckingInterval: lookEveryMs(patience),
      keepAliveTimeout: patience.keepAliveMs,
      // The listener sees to it, and says what is missing.
      requireHostHeader: false,
    });
    guard.watch(this.#server);
    this.#server.setTimeout(patience.answerMs);
    this.#listen(listener, malformed);
    // This server is handed its connections and never listens; but only this event starts the timer behind the
    // timeouts above, and the list behind closeIdleConnections.
    this.#server.emit("listening");
  }

  serve(socket: Socket, seen: Buffer): void {
    handTo(this.#server, socket, seen);
  }

  startClosing(): void {
    this.#isClosing = true;
    for (const res of this.#unanswered) if (!res.headersSent) res.setHeader("connection", "close");
  }

  closeIdle(): void {
    this.#server.closeIdleConnections();
  }

  /** Node looks by itself. */
  look(): void {}

  /** Stops Node's timer. */
  stop(): void {
    this.#server.close();
  }

  #listen(listener: RequestListener, malformed: (error: Error) => string): void {
    const unanswered = this.#unanswered;
    // One for all: a closure for each would cost more than the rest.
    const forget = function (this: http.ServerResponse): void {
      unanswered.delete(this);
    };
    const onRequest: RequestListener = (req, res) => {
      this.#guard.watch(req);
      this.#guard.watch(res);
      if (this.#isClosing) res.setHeader("connection", "close");
      unanswered.add(res);
      res.on("close", forget);
      listener(req, res);
    };
    this.#server.on("request", onRequest);
    // What else a client expects of us is its own affair: Node would answer without a body.
    this.#server.on("checkExpectation", onRequest);
    this.#server.on("connect", (_, socket) => socket.end(malformed(new Error("there are no tunnels here"))));
    this.#server.on("clientError", (error, socket) => {
      const answer = async () => {
        await this.#answersOnTheirWay(socket);
        if (socket.writable) socket.end(malformed(error));
        else socket.destroy();
      };
      this.#guard.settle(socket, answer());
    });
  }

  /** What follows a whole request may be garbage; its sender must not take the answer to that for its own. */
  async #answersOnTheirWay(socket: Duplex): Promise<void> {
    const unanswered = [...this.#unanswered].filter(({ req }) => req.socket === socket && req.complete);
    await Promise.all(unanswered.map((res) => new Promise((resolve) => res.once("close", resolve))));
  }
}
