import http from "node:http";
import type { RequestListener } from "../../rpc/request-listener.ts";
import { lookEveryMs, type Patience } from "./connections.ts";
import type { Guard } from "./guard.ts";
import type { NodeSocket } from "./node-socket.ts";

/** A connection whose requests Node reads. */
export interface NodeClient {
  /** Node has read the head of a request. Its answer is due when all before it have been given. */
  receiveFromNode(req: http.IncomingMessage, res: http.ServerResponse): void;
  /** Node can make nothing of what follows. Ends the connection with this response, behind the answers that are due. */
  refuse(response: string): void;
}

/** Node's own HTTP/1.1 server. It never listens: it gets connections that somebody else has accepted. */
export class NodeHttp1 {
  readonly #guard: Guard;
  readonly #server: http.Server;
  readonly #clients = new WeakMap<object, NodeClient>();
  readonly #listener: RequestListener;

  constructor(listener: RequestListener, malformed: (error: Error) => string, guard: Guard, patience: Patience) {
    this.#guard = guard;
    this.#listener = listener;
    this.#server = http.createServer({
      headersTimeout: patience.headersMs,
      requestTimeout: patience.requestMs,
      connectionsCheckingInterval: lookEveryMs(patience),
      keepAliveTimeout: patience.keepAliveMs,
      // The listener sees to it, and says what is missing.
      requireHostHeader: false,
    });
    guard.watch(this.#server);
    const receive: RequestListener = (req, res) => {
      guard.watch(req);
      guard.watch(res);
      this.#clientOf(req.socket).receiveFromNode(req, res);
    };
    this.#server.on("request", receive);
    // What else a client expects of us is its own affair: Node would answer without a body.
    this.#server.on("checkExpectation", receive);
    const noTunnels = new Error("there are no tunnels here");
    this.#server.on("connect", (_, socket) => this.#clientOf(socket).refuse(malformed(noTunnels)));
    this.#server.on("clientError", (error, socket) => this.#clientOf(socket).refuse(malformed(error)));
    // Only this event starts the timer behind the timeouts above.
    this.#server.emit("listening");
  }

  /** From now on what the socket is fed is read as HTTP, at once. */
  connect(socket: NodeSocket, client: NodeClient): void {
    this.#guard.watch(socket);
    this.#clients.set(socket, client);
    this.#server.emit("connection", socket);
    // Without a first read, Node would take the first bytes in a later turn.
    socket.read(0);
  }

  serve(req: http.IncomingMessage, res: http.ServerResponse): void {
    this.#listener(req, res);
  }

  /** Stops Node's timer. */
  stop(): void {
    this.#server.close();
  }

  #clientOf(socket: object): NodeClient {
    return this.#clients.get(socket) as NodeClient;
  }
}
