import type { Socket } from "node:net";
import type { Http1ReadBy } from "../../ambient/metrics.ts";
import type { JsonByHand } from "../../rpc/hot/json-by-hand.ts";
import { ByteQueue } from "./byte-queue.ts";
import type { Timeouts } from "./connections.ts";
import type { Guard } from "./guard.ts";
import type { NodeHttp1 } from "./node-http1.ts";
import { NodeRequests } from "./node-requests.ts";
import type { RoundRobin } from "./round-robin.ts";

/** Bytes that may wait to be served, including those of an incomplete request. Above this we stop reading. */
const inputBytesMax = 16_384;
/** What a connection may do in one turn. */
const requestsPerTurn = 32;
const answerBytesPerTurn = 32_768;
/** Bytes for Node in one turn. Few between two requests: Node makes objects for each pipelined request that it reads. */
const nodeHeadBytesPerTurn = 512;
const nodeBodyBytesPerTurn = 16_384;

export interface Http1Deps {
  /** Absent: Node reads everything. */
  readonly byHand: JsonByHand | undefined;
  readonly node: NodeHttp1;
  readonly roundRobin: RoundRobin;
  readonly guard: Guard;
  /** The response to a request that does not arrive in time. */
  readonly timeoutResponse: () => string;
  readonly onRequest: (readBy: Http1ReadBy) => void;
}

type State =
  /** We read the next request. */
  | "reading"
  /** A call of ours is under way. */
  | "answering"
  /** Node serves one request. If Node finds its end where we do, we read the next one. */
  | "lent"
  /** Node reads everything that follows. */
  | "node"
  /** The last answer has been sent. Further input is dropped. */
  | "ending";

/**
 * One HTTP/1.1 connection. Its requests are served one after the other: by hand where that is supported, by Node
 * otherwise. A request served by hand may arrive in pieces; it is served once it is complete.
 *
 * There are bounds on the bytes read but not served, on the bytes written but not yet read by the client, and on the work
 * done before other connections get their turn.
 */
export class Http1Connection {
  readonly socket: Socket;
  readonly #deps: Http1Deps;
  #state: State;
  /** Bytes that were read and not served yet. */
  readonly #input = new ByteQueue();
  /** With fewer bytes than this the next request is certainly incomplete. */
  #neededBytes = 1;
  #hasHead = false;
  /** The client sends no more. */
  #hasInputEnded = false;
  #isShuttingDown = false;
  /** Bytes of the lent request that Node has not been given yet. */
  #lendBytes = 0;
  /** The requests that Node reads. Created for the first of them. */
  #node: NodeRequests | undefined;
  /** Consecutive sweeps without progress; sweeps since the incomplete request began. */
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
      this.#hasInputEnded = true;
      this.scheduleTurn();
    });
    socket.on("drain", () => this.#drained());
    socket.on("close", () => this.#closed());
  }

  /** Whether the next answer is the last. */
  get isLast(): boolean {
    return this.#isShuttingDown;
  }

  /** Whether no request is being served or sent, and no answer is on its way. */
  get isIdle(): boolean {
    return !this.#isServing && this.#input.length === 0 && this.socket.writableLength === 0;
  }

  /** After the last answer, Node may still hold requests that are never answered: they do not count. */
  get #isServing(): boolean {
    return this.#state === "answering" || (this.#state !== "ending" && this.#node?.isServing === true);
  }

  /** From now on the next answer is the last, and says so. */
  startShutdown(): void {
    this.#isShuttingDown = true;
    this.#node?.startShutdown();
  }

  receive(chunk: Buffer): void {
    if (this.#state === "ending") return;
    // A client that keeps sending without reading its answers makes no progress.
    if (this.socket.writableLength === 0) this.#quietSweeps = 0;
    this.#input.push(chunk);
    if (this.#deps.roundRobin.has(this)) this.#adjustReading();
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

  /** Closes the connection if a request or response has been incomplete for too long. Called every `everyMs`. */
  sweep(everyMs: number, timeouts: Timeouts): void {
    const { writableLength } = this.socket;
    const isTaking = writableLength !== this.#untakenBytes;
    this.#untakenBytes = writableLength;
    this.#quietSweeps = isTaking || (this.#isServing && writableLength === 0) ? 0 : this.#quietSweeps + 1;
    const quietMs = this.#quietSweeps * everyMs;
    if (writableLength > 0) {
      if (quietMs > timeouts.answerMs) this.socket.destroy();
    } else if (this.#state === "ending") {
      if (quietMs > timeouts.headersMs) this.socket.destroy();
    } else if (this.#state === "reading" && this.#input.length > 0 && this.#input.length < this.#neededBytes) {
      const partialMs = ++this.#partialSweeps * everyMs;
      if (partialMs > (this.#hasHead ? timeouts.requestMs : timeouts.headersMs)) this.end(this.#deps.timeoutResponse());
    } else if (quietMs > timeouts.keepAliveMs) {
      this.socket.destroy();
    }
  }

  /** Serves requests by hand. */
  #serve(): void {
    // Backpressure: nothing more is served until the client has read its answers.
    if (this.socket.writableNeedDrain) return;
    if (this.#input.length < this.#neededBytes) {
      if (this.#hasInputEnded) this.#endOfInput();
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
        this.#deps.roundRobin.add(this);
        return;
      }
      const found = reader.read(bytes, at);
      const { end } = reader;
      const answer = found === "supported" ? this.#answerByHand(bytes) : undefined;
      if (typeof answer === "string") {
        at = end;
        answers += answer;
        if (!this.#isShuttingDown) continue;
        this.end(answers);
        return;
      }
      if (answers !== "") this.socket.write(answers);
      if (answer !== undefined) {
        this.#putBack(bytes, end);
        this.#state = "answering";
        this.#deps.guard.runAfter(this.socket, answer, (later) => this.#answerLater(later));
      } else if (found === "incomplete" && !(reader.hasHead && end - at > inputBytesMax)) {
        // A copy: otherwise the served requests in the same chunk would stay in memory until the rest arrives.
        this.#putBack(at > 0 ? Buffer.from(bytes.subarray(at)) : bytes, 0);
        if (at > 0) this.#partialSweeps = 0;
        this.#hasHead = reader.hasHead;
        this.#neededBytes = reader.hasHead ? end - at : this.#input.length + 1;
        if (this.#hasInputEnded) this.#endOfInput();
      } else if (found === "unknown") {
        this.#putBack(bytes, at);
        this.#giveToNode();
      } else {
        // Not supported, or a long body that comes in pieces: bodies that Node collects have a bound over all connections.
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
    if (this.#hasInputEnded) this.#endOfInput();
  }

  #answerByHand(bytes: Buffer): string | Promise<string> {
    this.#deps.onRequest("by_hand");
    return (this.#deps.byHand as JsonByHand).answer(bytes, this);
  }

  #answerLater(answer: string): void {
    if (this.socket.destroyed) return;
    if (this.#isShuttingDown) {
      this.end(answer);
      return;
    }
    this.socket.write(answer);
    this.#state = "reading";
    this.scheduleTurn();
  }

  /** Gives Node what has arrived of the lent request. If Node finds another end of it, Node gets the connection. */
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
      else if (this.#lendBytes === 0) this.scheduleTurn();
    } else if (this.#hasInputEnded) {
      node.finish();
    }
  }

  #giveToNode(): void {
    // Node may have refused the request, and ended the connection.
    if (this.#state === "ending") return;
    this.#state = "node";
    this.#nodeFor("node_framing");
    this.scheduleTurn();
  }

  #feedNode(): void {
    const node = this.#node ?? this.#nodeFor("node_only");
    if (!node.canTakeMore) return;
    if (this.#input.length > 0) {
      const bytes = this.#takeInput();
      const slice = bytes.subarray(0, node.isServing ? nodeBodyBytesPerTurn : nodeHeadBytesPerTurn);
      this.#putBack(bytes, slice.length);
      node.feed(slice);
      this.scheduleTurn();
    } else if (this.#hasInputEnded) {
      node.finish();
    }
  }

  #nodeFor(readBy: Http1ReadBy): NodeRequests {
    this.#node ??= new NodeRequests(this, readBy, this.#deps);
    this.#node.readBy = readBy;
    return this.#node;
  }

  /** Schedules a turn if there is something to do. A lent request that Node has answered gives the connection back first. */
  scheduleTurn(): void {
    if (this.#state === "lent" && this.#lendBytes === 0 && this.#node?.isServing === false) this.#state = "reading";
    if (this.#input.length >= this.#neededBytes || this.#hasInputEnded) this.#deps.roundRobin.add(this);
  }

  #drained(): void {
    this.#quietSweeps = 0;
    this.#node?.drained();
    this.scheduleTurn();
  }

  /** The client sends no more. Node answers a request that is still incomplete. */
  #endOfInput(): void {
    if (this.#input.length > 0) this.#giveToNode();
    else this.end("");
  }

  /** Sends these answers and ends the connection. */
  end(answers: string): void {
    this.#dropInput();
    this.#quietSweeps = 0;
    this.socket.end(answers);
    // Closing a socket with unread bytes sends a reset, and the client would lose the answer.
    this.socket.resume();
  }

  /** The client has gone: its waiting requests are not executed. */
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

  /** Puts back what follows `start`, for a later turn. */
  #putBack(bytes: Buffer, start: number): void {
    if (start > 0) this.#partialSweeps = 0;
    if (start < bytes.length) this.#input.push(bytes.subarray(start));
  }
}
