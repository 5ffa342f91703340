import type http from "node:http";
import type { Socket } from "node:net";
import type { Http1ReadBy } from "../../ambient/metrics.ts";
import type { NodeClient, NodeHttp1 } from "./node-http1.ts";
import { NodeSocket } from "./node-socket.ts";
import { hasTrustedCertificate } from "./tls-handshakes.ts";

/** The connection whose requests Node reads. */
interface Owner {
  readonly socket: Socket;
  /** Whether the next answer is the last. */
  readonly isLast: boolean;
  /** Sends these bytes and ends the connection. */
  end(answers: string): void;
  /** Node can take more, or has answered. */
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
export class NodeRequests implements NodeClient {
  readonly #owner: Owner;
  readonly #deps: { readonly node: NodeHttp1; readonly onRequest: (readBy: Http1ReadBy) => void };
  readonly #socket: NodeSocket;
  /** Requests not answered yet, in order. The first is being served. */
  readonly #exchanges: Exchange[] = [];
  /** Requests that Node has found in the bytes of the lent request. There must be exactly one. */
  #lent: http.IncomingMessage[] = [];
  #refusal: (() => string) | undefined;
  #isFull = false;
  /** Why Node reads them. */
  readBy: Http1ReadBy;

  constructor(owner: Owner, readBy: Http1ReadBy, deps: { node: NodeHttp1; onRequest: (readBy: Http1ReadBy) => void }) {
    this.#owner = owner;
    this.#deps = deps;
    this.readBy = readBy;
    const { socket } = owner;
    this.#socket = new NodeSocket({
      remoteAddress: () => socket.remoteAddress,
      hasTrustedCertificate: () => hasTrustedCertificate(socket),
      write: (chunk, encoding) => socket.writableEnded || socket.write(chunk, encoding),
      end: () => owner.end(""),
      destroy: () => socket.destroy(),
      onRead: () => {
        if (!this.#isFull) return;
        this.#isFull = false;
        owner.scheduleTurn();
      },
    });
    deps.node.connect(this.#socket, this);
  }

  get isServing(): boolean {
    return this.#exchanges.length > 0;
  }

  /** Whether Node can take more bytes: its buffer has room, and the requests that it has read are answered. */
  get canTakeMore(): boolean {
    return !this.#isFull && this.#refusal === undefined && this.#exchanges.at(-1)?.req.complete !== true;
  }

  /**
   * Gives Node a part of one request. Returns whether Node agrees with us about its end: with the last part Node must
   * find exactly one complete request, before that none.
   */
  lend(part: Buffer, isLast: boolean): boolean {
    const rest = isLast ? part.length - 1 : part.length;
    if (rest > 0) this.#socket.push(part.subarray(0, rest));
    if (this.#lent.some(({ complete }) => complete)) return false;
    if (!isLast) return true;
    this.#socket.push(part.subarray(rest));
    const agrees = this.#lent.length === 1 && this.#lent[0]?.complete === true;
    this.#lent = [];
    return agrees;
  }

  feed(bytes: Buffer): void {
    this.#lent = [];
    this.#isFull = !this.#socket.push(bytes);
  }

  /** No more bytes come. */
  finish(): void {
    this.#socket.push(null);
  }

  /** The connection can take more bytes of the answers. */
  drained(): void {
    this.#socket.drained();
  }

  startShutdown(): void {
    const [exchange] = this.#exchanges;
    if (exchange !== undefined && !exchange.res.headersSent) exchange.res.setHeader("connection", "close");
  }

  destroy(): void {
    this.#socket.destroy();
  }

  receiveFromNode(req: http.IncomingMessage, res: http.ServerResponse): void {
    if (this.#isEnding) return;
    this.#deps.onRequest(this.readBy);
    const exchange = { req, res };
    this.#exchanges.push(exchange);
    this.#lent.push(req);
    res.on("close", () => this.#answered(exchange));
    if (this.#exchanges.length === 1) this.#serve(exchange);
  }

  refuse(response: () => string): void {
    if (this.#isEnding) return;
    this.#refusal = response;
    this.#refuseWhenAnswered();
  }

  /** After an answer that ends the connection nothing is served. */
  get #isEnding(): boolean {
    return this.#socket.writableEnded || this.#owner.socket.writableEnded || this.#owner.socket.destroyed;
  }

  #serve({ req, res }: Exchange): void {
    // With an upgrade request, Node drops the other bytes it was given, and would continue in the middle of a request.
    const isReading = this.readBy === "node_framing" || this.readBy === "node_only";
    const isDropping = isReading && asksForUpgrade(req);
    if (this.#owner.isLast || isDropping) res.setHeader("connection", "close");
    this.#deps.node.serve(req, res);
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
