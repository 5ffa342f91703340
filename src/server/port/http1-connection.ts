import type { Socket } from "node:net";
import type { Http1ReadBy } from "../../ambient/metrics.ts";
import type { Http1FastPath } from "../../rpc/fast-path/http1-fast-path.ts";
import type { PrintedAnswer } from "../../rpc/http1-response.ts";
import { ByteQueue } from "./byte-queue.ts";
import type { Timeouts } from "./connections.ts";
import type { Guard } from "./guard.ts";
import type { NodeHttp1, NodeRequests } from "./node-http1.ts";
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
  readonly fastPath: Http1FastPath | undefined;
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
  /** Node reads everything that follows. */
  | "node"
  /** The last answer has been sent. Further input is dropped. */
  | "ending";

/**
 * One HTTP/1.1 connection. Its requests are served one after the other: by the fast path, until one comes that it does not
 * support. Then Node serves this one and all that follow. A request on the fast path may arrive in pieces; it is served
 * once it is complete.
 *
 * There are bounds on the bytes read but not served, on the bytes written but not yet read by the client, and on the work
 * done before other connections get their turn.
 */
export class Http1Connection {
  readonly socket: Socket;
  readonly #deps: Http1Deps;
  #state: State = "reading";
  /** Bytes that were read and not served yet. */
  readonly #input = new ByteQueue();
  /** With fewer bytes than this the next request is certainly incomplete. */
  #neededBytes = 1;
  #hasHead = false;
  /** The client sends no more. */
  #hasInputEnded = false;
  #isLast = false;
  /** The requests that Node reads, from the first of them. */
  #node: NodeRequests | undefined;
  /** Consecutive sweeps without progress; sweeps since the incomplete request began. */
  #quietSweeps = 0;
  #partialSweeps = 0;
  #untakenBytes = 0;

  constructor(socket: Socket, deps: Http1Deps) {
    this.socket = socket;
    this.#deps = deps;
    // A client that sends no more still gets its answers.
    socket.allowHalfOpen = true;
    socket.on("data", (chunk: Buffer) => this.receive(chunk));
    socket.on("end", () => {
      this.#hasInputEnded = true;
      this.scheduleTurn();
    });
    socket.on("drain", () => this.#drained());
    // The waiting requests of a client that has gone are not executed.
    socket.on("close", () => this.#dropInput());
  }

  /** Whether the next answer is the last. */
  get isLast(): boolean {
    return this.#isLast;
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
    this.#isLast = true;
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

  /** Serves requests on the fast path. */
  #serve(): void {
    const { fastPath } = this.#deps;
    if (fastPath === undefined) {
      this.#giveToNode("node_only");
      return;
    }
    // Backpressure: nothing more is served until the client has read its answers.
    if (this.socket.writableNeedDrain) return;
    if (this.#input.length < this.#neededBytes) {
      if (this.#hasInputEnded) this.#endOfInput();
      return;
    }
    const { reader } = fastPath;
    const bytes = this.#takeInput();
    let answers = "";
    let at = 0;
    for (let requests = 0; at < bytes.length; requests++) {
      if (requests >= requestsPerTurn || answers.length > answerBytesPerTurn) {
        this.#putBack(bytes, at);
        this.#write(answers);
        this.#deps.roundRobin.add(this);
        return;
      }
      const found = reader.read(bytes, at);
      if (found === "supported") {
        const { end } = reader;
        if (reader.isLast) this.#isLast = true;
        this.#deps.onRequest("by_hand");
        const answer = fastPath.answer(bytes, this);
        if (answer instanceof Promise) {
          this.#write(answers);
          this.#putBack(bytes, end);
          this.#state = "answering";
          this.#deps.guard.runAfter(this.socket, answer, (later) => this.#answerLater(later));
          return;
        }
        at = end;
        answers = this.#append(answers, answer);
        // A large one is read before more is served.
        if (typeof answer !== "string") requests = requestsPerTurn;
        if (!this.#isLast) continue;
        this.end(answers);
        return;
      }
      this.#write(answers);
      if (found === "incomplete" && !(reader.hasHead && reader.end - at > inputBytesMax)) {
        // A copy: otherwise the served requests in the same chunk would stay in memory until the rest arrives.
        if (at > 0) this.#partialSweeps = 0;
        this.#input.push(at > 0 ? Buffer.from(bytes.subarray(at)) : bytes);
        this.#hasHead = reader.hasHead;
        this.#neededBytes = reader.hasHead ? reader.end - at : this.#input.length + 1;
        if (this.#hasInputEnded) this.#endOfInput();
      } else {
        this.#putBack(bytes, at);
        // A long body that comes in pieces is Node's too: bodies that Node collects have a bound over all connections. Node
        // measures the time of a request from here, so earlier answers have to be read first.
        if (!this.socket.writableNeedDrain) this.#giveToNode(found === "incomplete" ? "node_body" : found);
      }
      return;
    }
    this.#partialSweeps = 0;
    this.#write(answers);
    if (this.#hasInputEnded) this.#endOfInput();
  }

  #write(text: string): void {
    // Node writes Latin-1 faster than UTF-8, and most answers are ASCII, which is both.
    if (text !== "") this.socket.write(text, Buffer.byteLength(text) === text.length ? "latin1" : "utf8");
  }

  /** Adds an answer to those that are not written yet. A large one is written, after them. */
  #append(answers: string, answer: PrintedAnswer): string {
    if (typeof answer === "string") return answers + answer;
    this.#write(answers + answer[0]);
    this.socket.write(answer[1]);
    return "";
  }

  #answerLater(answer: PrintedAnswer): void {
    if (this.socket.destroyed) return;
    const text = this.#append("", answer);
    if (this.#isLast) {
      this.end(text);
      return;
    }
    this.#write(text);
    this.#state = "reading";
    this.scheduleTurn();
  }

  /** For good: two parsers never read the same connection by turns. */
  #giveToNode(why: Http1ReadBy): void {
    this.#state = "node";
    this.#neededBytes = 1;
    this.#node = this.#deps.node.adopt(this, why, this.#deps.onRequest);
    this.#feedNode();
  }

  #feedNode(): void {
    const node = this.#node as NodeRequests;
    if (!node.canTakeMore) return;
    if (this.#input.length > 0) {
      if (!node.isServing) this.#parseByNode(node, nodeHeadBytesPerTurn);
      // As much of its body as is there: a request is served when the current turn has ended.
      if (this.#input.length > 0 && node.isServing && node.canTakeMore) this.#parseByNode(node, nodeBodyBytesPerTurn);
      this.scheduleTurn();
    } else if (this.#hasInputEnded) {
      node.finish();
    }
  }

  #parseByNode(node: NodeRequests, bytesMax: number): void {
    const bytes = this.#takeInput();
    this.#putBack(bytes, bytesMax);
    node.parse(bytes.subarray(0, bytesMax));
  }

  /** Schedules a turn if there is something to do. */
  scheduleTurn(): void {
    if (this.#input.length >= this.#neededBytes || this.#hasInputEnded) this.#deps.roundRobin.add(this);
  }

  #drained(): void {
    this.#quietSweeps = 0;
    this.scheduleTurn();
  }

  /** The client sends no more. Node answers a request that is still incomplete. */
  #endOfInput(): void {
    if (this.#input.length > 0) this.#giveToNode("node_framing");
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
