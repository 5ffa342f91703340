import type { Socket } from "node:net";
import type { Http1Way } from "../../ambient/metrics.ts";
import type { JsonByHand } from "../../rpc/hot/json-by-hand.ts";
import { ByteQueue } from "./byte-queue.ts";
import type { Patience } from "./connections.ts";
import type { Guard } from "./guard.ts";
import type { NodeHttp1 } from "./node-http1.ts";
import { NodeRequests } from "./node-requests.ts";
import type { Turns } from "./turns.ts";

/** Bytes that may wait to be served, those of a request that is not whole yet included. Reading stops beyond. */
const inputBytesMax = 16_384;
/** What a connection may do in its turn. */
const requestsPerTurn = 32;
const answerBytesPerTurn = 32_768;
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
  /** Node has one request. We read on behind it if Node finds its end where we do. */
  | "lent"
  /** Node reads everything that follows. */
  | "node"
  /** The last answer is given. What still comes is dropped. */
  | "ending";

/**
 * One connection of HTTP/1.1. Its requests are served one after the other: by hand where that is supported, by Node
 * otherwise. What is served by hand may arrive in pieces; it is served when it is whole.
 *
 * Bounded are: the bytes that are read and not served, the bytes that are answered and not taken, and the work that is done
 * before other connections have their turn.
 */
export class Http1Connection {
  readonly socket: Socket;
  readonly #deps: Http1Deps;
  #state: State;
  /** What was read and is not served. */
  readonly #input = new ByteQueue();
  /** With fewer bytes there is no whole request. */
  #neededBytes = 1;
  #hasHead = false;
  /** The client sends no more. */
  #isFinished = false;
  #isClosing = false;
  /** What Node has not been given yet of the request that is lent. */
  #lendBytes = 0;
  /** What Node reads. Made when there is something. */
  #node: NodeRequests | undefined;
  /** Sweeps since anything moved, and since the request began that is not whole yet. */
  #quietSweeps = 0;
  #partialSweeps = 0;
  #untakenBytes = 0;

  constructor(socket: Socket, deps: Http1Deps) {
    this.socket = socket;
    this.#deps = deps;
    this.#state = deps.byHand === undefined ? "node" : "reading";
    // A client that sends no more still gets its answers.
    socket.allowHalfOpen = true;
    socket.on("data", (chunk: Buffer) => this.receive(chunk));
    socket.on("end", () => {
      this.#isFinished = true;
      this.continue();
    });
    socket.on("drain", () => this.#drained());
    socket.on("close", () => this.#closed());
  }

  /** Whether the next answer is the last. */
  get isLast(): boolean {
    return this.#isClosing;
  }

  /** Whether no request is being served or sent, and no answer is on its way. */
  get isIdle(): boolean {
    return !this.#isServing && this.#input.length === 0 && this.socket.writableLength === 0;
  }

  /** Once the last answer is given, Node may still have requests that are never answered. */
  get #isServing(): boolean {
    return this.#state === "answering" || (this.#state !== "ending" && this.#node?.isServing === true);
  }

  /** From now on the next answer is the last, and says so. */
  startClosing(): void {
    this.#isClosing = true;
    this.#node?.startClosing();
  }

  receive(chunk: Buffer): void {
    if (this.#state === "ending") return;
    // A client that sends on without taking its answers is as good as silent.
    if (this.socket.writableLength === 0) this.#quietSweeps = 0;
    this.#input.push(chunk);
    if (this.#deps.turns.has(this)) this.#adjustReading();
    else this.work();
  }

  /** Does what this connection may do in one turn. */
  work(): void {
    if (this.#state === "reading") this.#serve();
    else if (this.#state === "lent") this.#lendMore();
    else if (this.#state === "node") this.#feedNode();
    this.#adjustReading();
  }

  #adjustReading(): void {
    const isEnough = this.#input.length > inputBytesMax;
    if (isEnough !== this.socket.isPaused()) isEnough ? this.socket.pause() : this.socket.resume();
  }

  /** Ends what has been half sent, or half taken, for too long. Called every `everyMs`. */
  sweep(everyMs: number, patience: Patience): void {
    const { writableLength } = this.socket;
    const isTaking = writableLength !== this.#untakenBytes;
    this.#untakenBytes = writableLength;
    this.#quietSweeps = isTaking || (this.#isServing && writableLength === 0) ? 0 : this.#quietSweeps + 1;
    const quietMs = this.#quietSweeps * everyMs;
    if (writableLength > 0) {
      if (quietMs > patience.answerMs) this.socket.destroy();
    } else if (this.#state === "ending") {
      if (quietMs > patience.headersMs) this.socket.destroy();
    } else if (this.#state === "reading" && this.#input.length > 0 && this.#input.length < this.#neededBytes) {
      const partialMs = ++this.#partialSweeps * everyMs;
      if (partialMs > (this.#hasHead ? patience.requestMs : patience.headersMs)) this.end(this.#deps.timedOut());
    } else if (quietMs > patience.keepAliveMs) {
      this.socket.destroy();
    }
  }

  /** By hand. */
  #serve(): void {
    // A client that does not take its answers is served no more until it does.
    if (this.socket.writableNeedDrain) return;
    if (this.#input.length < this.#neededBytes) {
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
        this.end(answers);
        return;
      }
      if (answers !== "") this.socket.write(answers);
      if (answer !== undefined) {
        this.#putBack(bytes, end);
        this.#state = "answering";
        this.#deps.guard.settle(this.socket, this.#answerLater(answer));
      } else if (found === "incomplete" && !(reader.hasHead && end - at > inputBytesMax)) {
        // What was read along with it is not kept in memory for as long as the rest takes to come.
        this.#putBack(at > 0 ? Buffer.from(bytes.subarray(at)) : bytes, 0);
        if (at > 0) this.#partialSweeps = 0;
        this.#hasHead = reader.hasHead;
        this.#neededBytes = reader.hasHead ? end - at : this.#input.length + 1;
        if (this.#isFinished) this.#endOfInput();
      } else if (found === "unknown") {
        this.#putBack(bytes, at);
        this.#giveToNode();
      } else {
        // A long body that comes in pieces, too: for those that Node collects there is a bound over all connections.
        this.#putBack(bytes, at);
        this.#state = "lent";
        this.#lendBytes = end - at;
        this.#nodeFor(found !== "other" ? "node_body" : reader.target === undefined ? "node_path" : "node_head");
        this.#lendMore();
      }
      return;
    }
    this.#putBack(bytes, at);
    this.socket.write(answers);
    if (this.#isFinished) this.#endOfInput();
  }

  #answerByHand(bytes: Buffer): string | Promise<string> {
    this.#deps.onRequest("by_hand");
    return (this.#deps.byHand as JsonByHand).answer(bytes, this);
  }

  async #answerLater(answering: Promise<string>): Promise<void> {
    const answer = await answering;
    if (this.socket.destroyed) return;
    if (this.#isClosing) {
      this.end(answer);
      return;
    }
    this.socket.write(answer);
    this.#state = "reading";
    this.continue();
  }

  /** Gives Node what is there of the lent request. If Node finds its end elsewhere than we do, Node keeps the connection. */
  #lendMore(): void {
    const node = this.#node as NodeRequests;
    if (this.#lendBytes === 0) return;
    if (this.#input.length > 0) {
      const bytes = this.#takeInput();
      const part = bytes.subarray(0, this.#lendBytes);
      this.#putBack(bytes, part.length);
      this.#lendBytes -= part.length;
      if (!node.lend(part, this.#lendBytes === 0)) this.#giveToNode();
      // Node may have answered before it had the whole request.
      else if (this.#lendBytes === 0) this.continue();
    } else if (this.#isFinished) {
      node.finish();
    }
  }

  #giveToNode(): void {
    // Node may have refused the request, and ended the connection.
    if (this.#state === "ending") return;
    this.#state = "node";
    this.#nodeFor("node_framing");
    this.continue();
  }

  #feedNode(): void {
    const node = this.#node ?? this.#nodeFor("node_only");
    if (!node.canTakeMore) return;
    if (this.#input.length > 0) {
      const bytes = this.#takeInput();
      const slice = bytes.subarray(0, node.isServing ? nodeBodyBytesPerTurn : nodeHeadBytesPerTurn);
      this.#putBack(bytes, slice.length);
      node.feed(slice);
      this.continue();
    } else if (this.#isFinished) {
      node.finish();
    }
  }

  #nodeFor(way: Http1Way): NodeRequests {
    this.#node ??= new NodeRequests(this, way, this.#deps);
    this.#node.way = way;
    return this.#node;
  }

  /** In a later turn, if there is something to do. */
  continue(): void {
    if (this.#state === "lent" && this.#lendBytes === 0 && this.#node?.isServing === false) this.#state = "reading";
    if (this.#input.length >= this.#neededBytes || this.#isFinished) this.#deps.turns.add(this);
  }

  #drained(): void {
    this.#quietSweeps = 0;
    this.#node?.drained();
    this.continue();
  }

  /** A request that was not sent to its end is Node's to answer. */
  #endOfInput(): void {
    if (this.#input.length > 0) this.#giveToNode();
    else this.end("");
  }

  /** Ends the connection behind these answers. */
  end(answers: string): void {
    this.#dropInput();
    this.#quietSweeps = 0;
    this.socket.end(answers);
    // Closing upon bytes that were not read would take the answer back.
    this.socket.resume();
  }

  /** What was read is not executed for a client that has gone. */
  #closed(): void {
    this.#dropInput();
    this.#node?.destroy();
  }

  #dropInput(): void {
    this.#state = "ending";
    this.#input.clear();
  }

  #takeInput(): Buffer {
    this.#neededBytes = 1;
    this.#hasHead = false;
    return this.#input.take();
  }

  /** What follows waits for its turn. */
  #putBack(bytes: Buffer, start: number): void {
    if (start > 0) this.#partialSweeps = 0;
    if (start < bytes.length) this.#input.push(bytes.subarray(start));
  }
}
