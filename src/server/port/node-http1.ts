import http from "node:http";
import type { Socket } from "node:net";
import type { Http1ReadBy } from "../../ambient/metrics.ts";
import { headersBytesMax } from "../../rpc/http1-response.ts";
import type { RequestListener } from "../../rpc/request-listener.ts";
import { askForBody } from "./ask-for-body.ts";
import { sweepEveryMs, type Timeouts } from "./connections.ts";
import type { Guard } from "./guard.ts";

/** Node's own HTTP/1.1 server. It never listens: it gets connections that `OnePort` has accepted. */
export class NodeHttp1 {
  readonly #server: http.Server;
  readonly #requestsOf = new WeakMap<object, NodeRequests>();
  readonly #listener: RequestListener;

  constructor(listener: RequestListener, malformed: (error: Error) => string, guard: Guard, timeouts: Timeouts) {
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
      this.#requestsOf.get(req.socket)?.receive(req, res);
    };
    this.#server.on("request", receive);
    this.#server.on("checkContinue", (req, res) => {
      askForBody(req, res);
      receive(req, res);
    });
    // An unknown Expect header is ignored. Node alone would answer 417 without a body.
    this.#server.on("checkExpectation", receive);
    const noTunnels = new Error("there are no tunnels here");
    const refuse = (error: Error, socket: object) => this.#requestsOf.get(socket)?.refuse(() => malformed(error));
    this.#server.on("connect", (_, socket) => refuse(noTunnels, socket));
    this.#server.on("clientError", refuse);
    // Only this event starts Node's timer for the timeouts above.
    this.#server.emit("listening");
  }

  /**
   * Gives a connection to Node for good: from now on nothing else reads its requests. Node gets the bytes
   * through `NodeRequests.parse`, because it would begin with all requests that come in one packet.
   */
  adopt(owner: Owner, readBy: Http1ReadBy, onRequest: (readBy: Http1ReadBy) => void): NodeRequests {
    const { socket } = owner;
    const requests = new NodeRequests(owner, this.#listener, () => onRequest(readBy));
    this.#requestsOf.set(socket, requests);
    const readers = socket.listeners("data") as (() => void)[];
    const before = new Set([...readers, ...socket.listeners("end")]);
    this.#server.emit("connection", socket);
    requests.parse = takeListener(socket, "data", before) as (bytes: Buffer) => void;
    requests.finish = takeListener(socket, "end", before);
    // Node's parser reads below the socket until somebody else begins to listen.
    for (const reader of readers) socket.off("data", reader).on("data", reader);
    // Node closes a connection at its last answer even if unread bytes have come, which resets it.
    socket.destroySoon = () => owner.end("");
    return requests;
  }

  /** Stops Node's timer. */
  stop(): void {
    this.#server.close();
  }
}

/** The listener that Node has added. It no longer gets the event. */
function takeListener(socket: Socket, event: "data" | "end", before: ReadonlySet<unknown>): (...args: never[]) => void {
  const [added, ...others] = socket.listeners(event).filter((listener) => !before.has(listener));
  if (added === undefined || others.length > 0) throw new Error("node:http reads connections in an unknown way");
  socket.off(event, added as () => void);
  return added as () => void;
}

/** The connection whose requests Node reads. */
interface Owner {
  readonly socket: Socket;
  /** Whether the next answer is the last. */
  readonly isLast: boolean;
  /** Sends these bytes and ends the connection. */
  end(answers: string): void;
  /** Node has answered. */
  scheduleTurn(): void;
}

interface Exchange {
  readonly req: http.IncomingMessage;
  readonly res: http.ServerResponse;
}

/**
 * The requests of one connection that Node reads. They are served one at a time, so that no request is executed after
 * an answer that ends the connection.
 */
export class NodeRequests {
  readonly #owner: Owner;
  readonly #serveRequest: RequestListener;
  readonly #onRequest: () => void;
  /** Requests not answered yet, in order. The first is being served. */
  readonly #exchanges: Exchange[] = [];
  #refusal: (() => string) | undefined;
  /** Has Node parse these bytes, synchronously. Only while `canTakeMore`. */
  parse: (bytes: Buffer) => void = () => {};
  /** Tells Node that no more bytes come. */
  finish: () => void = () => {};

  constructor(owner: Owner, serveRequest: RequestListener, onRequest: () => void) {
    this.#owner = owner;
    this.#serveRequest = serveRequest;
    this.#onRequest = onRequest;
  }

  get isServing(): boolean {
    return this.#exchanges.length > 0;
  }

  /** Whether Node can take more bytes: the requests that it has read are answered, and there is room for bodies and answers. */
  get canTakeMore(): boolean {
    const req = this.#exchanges.at(-1)?.req;
    if (this.#refusal !== undefined || this.#owner.socket.writableNeedDrain) return false;
    return req === undefined || (!req.complete && req.readableLength < req.readableHighWaterMark);
  }

  startShutdown(): void {
    const [exchange] = this.#exchanges;
    if (exchange !== undefined && !exchange.res.headersSent) exchange.res.setHeader("connection", "close");
  }

  /** Node has read the head of a request. It is answered after all requests before it. */
  receive(req: http.IncomingMessage, res: http.ServerResponse): void {
    if (this.#isEnding) return;
    this.#onRequest();
    const exchange = { req, res };
    this.#exchanges.push(exchange);
    res.on("close", () => this.#answered(exchange));
    if (this.#exchanges.length === 1) this.#serve(exchange);
  }

  /**
   * Node cannot parse what follows. Ends the connection with this response, after the answers that are due. It is made
   * only if it is sent.
   */
  refuse(response: () => string): void {
    if (this.#isEnding) return;
    this.#refusal = response;
    this.#refuseWhenAnswered();
  }

  /** After an answer that ends the connection nothing is served. */
  get #isEnding(): boolean {
    return this.#owner.socket.writableEnded || this.#owner.socket.destroyed;
  }

  #serve({ req, res }: Exchange): void {
    // With an upgrade request, Node drops the other bytes it was given, and would continue in the middle of a request.
    if (this.#owner.isLast || asksForUpgrade(req)) res.setHeader("connection", "close");
    this.#serveRequest(req, res);
  }

  #answered(exchange: Exchange): void {
    this.#exchanges.splice(this.#exchanges.indexOf(exchange), 1);
    if (this.#isEnding) return;
    const [next] = this.#exchanges;
    if (next !== undefined) this.#serve(next);
    if (this.#refusal !== undefined) this.#refuseWhenAnswered();
    else this.#owner.scheduleTurn();
  }

  /** Garbage may follow a complete request. Its error must not be sent first: the client would take it for its answer. */
  #refuseWhenAnswered(): void {
    const response = this.#refusal;
    if (response !== undefined && !this.#exchanges.some(({ req }) => req.complete)) this.#owner.end(response());
  }
}

function asksForUpgrade({ headers }: http.IncomingMessage): boolean {
  return headers.upgrade !== undefined && /upgrade/i.test(headers.connection ?? "");
}
