import http from "node:http";
import { headersBytesMax } from "../../rpc/http1-response.ts";
import type { RequestListener } from "../../rpc/request-listener.ts";
import { askForBody } from "./ask-for-body.ts";
import { sweepEveryMs, type Timeouts } from "./connections.ts";
import type { Guard } from "./guard.ts";
import type { NodeSocket } from "./node-socket.ts";

/** A connection whose requests Node reads. */
export interface NodeClient {
  /** Node has read the head of a request. It is answered after all requests before it. */
  receiveFromNode(req: http.IncomingMessage, res: http.ServerResponse): void;
  /**
   * Node cannot parse what follows. Ends the connection with this response, after the answers that are due. It is made
   * only if it is sent.
   */
  refuse(response: () => string): void;
}

/** Node's own HTTP/1.1 server. It never listens: it gets connections that `OnePort` has accepted. */
export class NodeHttp1 {
  readonly #guard: Guard;
  readonly #server: http.Server;
  readonly #clients = new WeakMap<object, NodeClient>();
  readonly #listener: RequestListener;

  constructor(listener: RequestListener, malformed: (error: Error) => string, guard: Guard, timeouts: Timeouts) {
    this.#guard = guard;
    this.#listener = listener;
    this.#server = http.createServer({
      headersTimeout: timeouts.headersMs,
      requestTimeout: timeouts.requestMs,
      connectionsCheckingInterval: sweepEveryMs(timeouts),
      keepAliveTimeout: timeouts.keepAliveMs,
      maxHeaderSize: headersBytesMax,
      // The listener checks it and answers with an error that names the missing header.
      requireHostHeader: false,
    });
    guard.watch(this.#server);
    const receive: RequestListener = (req, res) => {
      guard.watch(req);
      guard.watch(res);
      this.#clientOf(req.socket).receiveFromNode(req, res);
    };
    this.#server.on("request", receive);
    this.#server.on("checkContinue", (req, res) => {
      askForBody(req, res);
      receive(req, res);
    });
    // An unknown Expect header is ignored. Node alone would answer 417 without a body.
    this.#server.on("checkExpectation", receive);
    const noTunnels = new Error("there are no tunnels here");
    this.#server.on("connect", (_, socket) => this.#clientOf(socket).refuse(() => malformed(noTunnels)));
    this.#server.on("clientError", (error, socket) => this.#clientOf(socket).refuse(() => malformed(error)));
    // Only this event starts Node's timer for the timeouts above.
    this.#server.emit("listening");
  }

  /** From now on Node reads what is pushed into the socket as HTTP, synchronously. */
  connect(socket: NodeSocket, client: NodeClient): void {
    this.#guard.watch(socket);
    this.#clients.set(socket, client);
    this.#server.emit("connection", socket);
    // Without this first read, Node would read the first bytes in a later turn of the event loop.
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
