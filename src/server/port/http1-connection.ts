import type http from "node:http";
import type { Socket } from "node:net";
import type { Http1Way } from "../../ambient/metrics.ts";
import type { JsonByHand } from "../../rpc/hot/json-by-hand.ts";
import type { Patience } from "./connections.ts";
import type { Guard } from "./guard.ts";
import type { NodeClient, NodeHttp1 } from "./node-http1.ts";
import { NodeSocket } from "./node-socket.ts";
import type { Turns } from "./turns.ts";

/** Bytes that may wait to be served, beside those of a request that is not whole yet. Reading stops beyond. */
const inputBytesMax = 16_384;
/** What a connection may do in its turn. */
const requestsPerTurn = 32;
const answerBytesPerTurn = 65_536;
/** Given to Node between two requests: each request that it reads is kept until it is answered. And within one. */
const nodeHeadBytesPerTurn = 512;
const nodeBodyBytesPerTurn = 16_384;

export interface Http1Deps {
  /** Absent: Node reads everything. */
  readonly byHand: JsonByHand | undefined;
  readonly node: NodeHttp1;
  readonly turns: Turns;
  readonly guard: Guard;
  /** The response to a request that does not arrive in time. */
  readonly timedOut: () => string;
  readonly onRequest: (way: Http1Way) => void;
}

type State =
  /** We read the next request. */
  | "reading"
  /** A call of ours is under way. */
  | "answering"
  /** Node has one request, whose end it and we agree on. We read on behind it. */
  | "lent"
  /** Node reads everything that follows. */
  | "node"
  /** The last answer is given. What still comes is dropped. */
  | "ending";

interface Exchange {
  readonly req: http.IncomingMessage;
  readonly res: http.ServerResponse;
}

/**
 * One connection of HTTP/1.1. Its requests are served one after the other: by hand where that is supported, by Node
 * otherwise. A request that arrives in pieces is served when it is whole.
 *
 * Bounded are: the bytes that are read and not served, the bytes that are answered and not taken, and the work that is done
 * before other connections have their turn.
 */
export class Http1Connection implements NodeClient {
  readonly socket: Socket;
  readonly #deps: Http1Deps;
  #state: State;
  /** What was read and is not served. */
  #input: Buffer[] = [];
  #inputBytes = 0;
  /** With fewer bytes there is no whole request. */
  #neededBytes = 1;
  #hasHead = false;
  /** The client sends no more. */
  #isFinished = false;
  #isClosing = false;
  #nodeSocket: NodeSocket | undefined;
  #isNodeFull = false;
  /** Why Node gets requests. */
  #nodeWay: Http1Way;
  /** Requests that Node has read and that are not answered, in their order. The first is being served. */
  readonly #exchanges: Exchange[] = [];
  #refusal: string | undefined;
  /** Sweeps since anything moved, and since the request began that is not whole yet. */
  #quietSweeps = 0;
  #partialSweeps = 0;
  #untakenBytes = 0;

  constructor(socket: Socket, deps: Http1Deps) {
    this.socket = socket;
    this.#deps = deps;
    this.#state = deps.byHand === undefined ? "node" : "reading";
    this.#nodeWay = deps.byHand === undefined ? "node_only" : "node_path";
    // A client that sends no more still gets its answers.
    socket.allowHalfOpen = true;
    socket.on("data", (chunk: Buffer) => this.receive(chunk));
    socket.on("end", () => this.#finish());
    socket.on("drain", () => this.#drained());
    socket.on("close", () => this.#closed());
  }

  /** Whether the next answer is the last. */
  get isLast(): boolean {
    return this.#isClosing;
  }

  /** Whether no request is being served or sent, and no answer is on its way. */
  get isIdle(): boolean {
    const isServing = this.#state === "answering" || this.#exchanges.length > 0;
    return !isServing && this.#inputBytes === 0 && this.socket.writableLength === 0;
  }

  /** From now on the next answer is the last, and says so. */
  startClosing(): void {
    this.#isClosing = true;
    const [exchange] = this.#exchanges;
    if (exchange !== undefined && !exchange.res.headersSent) exchange.res.setHeader("connection", "close");
  }

  receive(chunk: Buffer): void {
    if (this.#state === "ending") return;
    this.#quietSweeps = 0;
    this.#input.push(chunk);
    this.#inputBytes += chunk.length;
    if (this.#deps.turns.has(this)) this.#adjustReading();
    else this.work();
  }

  /** Does what this connection may do in one turn. */
  work(): void {
    if (this.#state === "reading") this.#serve();
    else if (this.#state === "node") this.#feedNode();
    this.#adjustReading();
  }

  #adjustReading(): void {
    const isEnough = this.#inputBytes > inputBytesMax && this.#inputBytes >= this.#neededBytes;
    if (isEnough !== this.socket.isPaused()) isEnough ? this.socket.pause() : this.socket.resume();
  }

  /** Ends what has been half sent, or half taken, for too long. Called every `everyMs`. */
  sweep(everyMs: number, patience: Patience): void {
    const { writableLength } = this.socket;
    const isServing = this.#state === "answering" || this.#exchanges.length > 0;
    const isTaking = writableLength !== this.#untakenBytes;
    this.#untakenBytes = writableLength;
    this.#quietSweeps = isTaking || (isServing && writableLength === 0) ? 0 : this.#quietSweeps + 1;
    const quietMs = this.#quietSweeps * everyMs;
    if (writableLength > 0) {
      if (quietMs > patience.answerMs) this.socket.destroy();
    } else if (this.#state === "ending") {
      if (quietMs > patience.headersMs) this.socket.destroy();
    } else if (this.#state === "reading" && this.#inputBytes > 0 && this.#inputBytes < this.#neededBytes) {
      const partialMs = ++this.#partialSweeps * everyMs;
      if (partialMs > (this.#hasHead ? patience.requestMs : patience.headersMs)) this.#end(this.#deps.timedOut());
    } else if (quietMs > patience.keepAliveMs) {
      this.socket.destroy();
    }
  }

  /** By hand. */
  #serve(): void {
    // A client that does not take its answers is served no more until it does.
    if (this.socket.writableNeedDrain) return;
    if (this.#inputBytes < this.#neededBytes) {
      if (this.#isFinished) this.#endOfInput();
      return;
    }
    const { reader } = this.#deps.byHand as JsonByHand;
    const bytes = this.#takeInput();
    let answers = "";
    let at = 0;
    for (let requests = 0; at < bytes.length; requests++) {
      if (requests === requestsPerTurn || answers.length > answerBytesPerTurn) {
        this.#putBack(bytes, at);
        this.socket.write(answers);
        this.#deps.turns.add(this);
        return;
      }
      const found = reader.read(bytes, at);
      const { end } = reader;
      const answer = found === "supported" ? this.#answerByHand(bytes) : undefined;
      if (typeof answer === "string") {
        at = end;
        answers += answer;
        if (!this.#isClosing) continue;
        this.#end(answers);
        return;
      }
      if (answers !== "") this.socket.write(answers);
      if (answer !== undefined) {
        this.#putBack(bytes, end);
        this.#state = "answering";
        this.#deps.guard.settle(this.socket, this.#answerLater(answer));
      } else if (found === "incomplete") {
        this.#putBack(bytes, at);
        this.#hasHead = reader.hasHead;
        this.#neededBytes = reader.hasHead ? end - at : this.#inputBytes + 1;
        if (this.#isFinished) this.#endOfInput();
      } else if (found === "unknown") {
        this.#putBack(bytes, at);
        this.#giveToNode();
      } else {
        this.#putBack(bytes, end);
        this.#nodeWay = found === "supported" ? "node_body" : reader.target === undefined ? "node_path" : "node_head";
        this.#lendToNode(bytes.subarray(at, end));
      }
      return;
    }
    this.socket.write(answers);
    if (this.#isFinished) this.#endOfInput();
  }

  #answerByHand(bytes: Buffer): string | Promise<string> | undefined {
    const answer = (this.#deps.byHand as JsonByHand).answer(bytes, this);
    if (answer !== undefined) this.#deps.onRequest("by_hand");
    return answer;
  }

  async #answerLater(answering: Promise<string>): Promise<void> {
    const answer = await answering;
    if (this.socket.destroyed) return;
    if (this.#isClosing) {
      this.#end(answer);
      return;
    }
    this.socket.write(answer);
    this.#state = "reading";
    this.#continue();
  }

  /** Gives Node one request. If Node finds its end elsewhere than we do, Node keeps the connection. */
  #lendToNode(request: Buffer): void {
    this.#state = "lent";
    const node = this.#openNode();
    const last = request.length - 1;
    node.push(request.subarray(0, last));
    const isEarly = this.#exchanges[0]?.req.complete === true;
    node.push(request.subarray(last));
    const agrees = !isEarly && this.#exchanges.length === 1 && this.#exchanges[0]?.req.complete === true;
    if (!agrees && this.#state === "lent") this.#giveToNode();
  }

  #giveToNode(): void {
    this.#state = "node";
    this.#nodeWay = "node_framing";
    this.#continue();
  }

  #feedNode(): void {
    if (this.#isNodeFull || this.#refusal !== undefined || this.#exchanges.at(-1)?.req.complete === true) return;
    const node = this.#openNode();
    if (this.#inputBytes > 0) {
      const bytes = this.#takeInput();
      const slice = bytes.subarray(0, this.#exchanges.length > 0 ? nodeBodyBytesPerTurn : nodeHeadBytesPerTurn);
      this.#putBack(bytes, slice.length);
      this.#isNodeFull = !node.push(slice);
      this.#continue();
    } else if (this.#isFinished && !node.readableEnded) {
      node.push(null);
    }
  }

  #openNode(): NodeSocket {
    if (this.#nodeSocket !== undefined) return this.#nodeSocket;
    const { socket } = this;
    this.#nodeSocket = new NodeSocket({
      write: (chunk, encoding) => socket.writableEnded || socket.write(chunk, encoding),
      end: () => this.#end(""),
      destroy: () => socket.destroy(),
      hungry: () => {
        if (!this.#isNodeFull) return;
        this.#isNodeFull = false;
        this.#continue();
      },
    });
    this.#deps.node.connect(this.#nodeSocket, this);
    return this.#nodeSocket;
  }

  receiveFromNode(req: http.IncomingMessage, res: http.ServerResponse): void {
    if (this.#state === "ending") return;
    this.#deps.onRequest(this.#nodeWay);
    const exchange = { req, res };
    this.#exchanges.push(exchange);
    res.on("close", () => this.#answeredByNode(exchange));
    if (this.#exchanges.length === 1) this.#serveByNode(exchange);
  }

  refuse(response: string): void {
    this.#state = "node";
    this.#refusal = response;
    this.#refuseWhenAnswered();
  }

  #serveByNode({ req, res }: Exchange): void {
    if (this.#isClosing) res.setHeader("connection", "close");
    this.#deps.node.serve(req, res);
  }

  #answeredByNode(exchange: Exchange): void {
    this.#exchanges.splice(this.#exchanges.indexOf(exchange), 1);
    // Behind an answer that ends the connection nothing is served.
    if (this.#state === "ending" || this.#nodeSocket?.writableEnded === true || this.socket.destroyed) return;
    const [next] = this.#exchanges;
    if (next !== undefined) this.#serveByNode(next);
    else if (this.#state === "lent") this.#state = "reading";
    if (this.#refusal !== undefined) this.#refuseWhenAnswered();
    else this.#continue();
  }

  /** What follows a whole request may be garbage. The sender must not take the answer to that for its own. */
  #refuseWhenAnswered(): void {
    if (!this.#exchanges.some(({ req }) => req.complete)) this.#end(this.#refusal as string);
  }

  /** In a later turn, if there is something to do. */
  #continue(): void {
    if (this.#inputBytes >= this.#neededBytes || this.#isFinished) this.#deps.turns.add(this);
  }

  #drained(): void {
    this.#quietSweeps = 0;
    this.#nodeSocket?.drained();
    this.#continue();
  }

  #finish(): void {
    this.#isFinished = true;
    this.#continue();
  }

  /** A request that was not sent to its end is Node's to answer. */
  #endOfInput(): void {
    if (this.#inputBytes > 0) this.#giveToNode();
    else this.#end("");
  }

  #end(answers: string): void {
    this.#dropInput();
    this.#quietSweeps = 0;
    this.socket.end(answers);
    // Closing upon bytes that were not read would take the answer back.
    this.socket.resume();
  }

  /** What was read is not executed for a client that has gone. */
  #closed(): void {
    this.#dropInput();
    this.#nodeSocket?.destroy();
  }

  #dropInput(): void {
    this.#state = "ending";
    this.#input = [];
    this.#inputBytes = 0;
  }

  #takeInput(): Buffer {
    const [first = nothing, ...more] = this.#input;
    const bytes = more.length === 0 ? first : Buffer.concat(this.#input);
    this.#input = [];
    this.#inputBytes = 0;
    this.#neededBytes = 1;
    this.#hasHead = false;
    return bytes;
  }

  /** What follows waits for its turn. */
  #putBack(bytes: Buffer, start: number): void {
    if (start > 0) this.#partialSweeps = 0;
    if (start === bytes.length) return;
    this.#input = [bytes.subarray(start)];
    this.#inputBytes = bytes.length - start;
  }
}

const nothing: Buffer = Buffer.alloc(0);
