import type { Socket } from "node:net";
import type { DescMessage, MessageInitShape } from "@bufbuild/protobuf";
import { toApiError } from "../to-api-error.ts";
import { HotCall, type HotDeps, type HotEndpoint, hotEndpointsOf } from "./hot-call.ts";
import { PlainRequestReader } from "./plain-request.ts";
import { AnswerPrinter } from "./print-answer.ts";

/** Serves a connection from its first byte on. `leave` takes it over, with what was read and is for somebody else. */
export type TakeConnection = (socket: Socket, leave: (rest: Buffer) => void) => HotConnection;

/** Bytes of further requests that may come while one waits for its answer. */
const waitingBytesMax = 65_536;

/** Answers hot methods as JSON on connections of HTTP/1.1, as long as nothing odd comes along. */
export function createHotConnections(
  deps: HotDeps & { readonly httpDate: () => string; readonly keepAliveMs: number },
): TakeConnection {
  // Its headers are read and forgotten, so that a method which asks for one is not for this path.
  const open = hotEndpointsOf(deps.endpoints).filter(({ endpoint }) => endpoint.access === "public");
  const reader = new PlainRequestReader(new Map(open.map((hot) => [hot.codec.path, hot])));
  const printer = new AnswerPrinter(deps.httpDate, deps.keepAliveMs);
  return (socket, leave) => new HotConnection(socket, leave, { ...deps, reader, printer });
}

interface HotConnectionDeps extends HotDeps {
  readonly reader: PlainRequestReader<HotEndpoint>;
  readonly printer: AnswerPrinter;
}

/**
 * One connection, its requests read and its answers written by hand: Node's objects for a request and its response cost
 * several times what a verification does. The first request that is odd, or not whole when it arrives, is Node's, and so is
 * everything after it.
 */
export class HotConnection {
  readonly #socket: Socket;
  readonly #leave: (rest: Buffer) => void;
  readonly #deps: HotConnectionDeps;
  readonly #onData = (chunk: Buffer) => this.receive(chunk);
  readonly #onDrain = () => this.#drained();
  /** A request waits for its answer; those behind it have to, too. */
  #isBusy = false;
  #waiting = nothing;
  #isLast = false;
  #quietLooks = 0;

  constructor(socket: Socket, leave: (rest: Buffer) => void, deps: HotConnectionDeps) {
    this.#socket = socket;
    this.#leave = leave;
    this.#deps = deps;
    socket.on("data", this.#onData);
    socket.on("drain", this.#onDrain);
  }

  /** Whether nobody waits for an answer. */
  get isIdle(): boolean {
    return !this.#isBusy && this.#socket.writableLength === 0;
  }

  /** Called once in a while: answers how many times it was since anything moved here. */
  countQuietLook(): number {
    return this.#isBusy ? 0 : ++this.#quietLooks;
  }

  /** The next answer is the last, and says so. */
  startClosing(): void {
    this.#isLast = true;
  }

  receive(chunk: Buffer): void {
    this.#quietLooks = 0;
    if (!this.#isBusy) {
      this.#serve(chunk);
      return;
    }
    this.#waiting = this.#waiting.length === 0 ? chunk : Buffer.concat([this.#waiting, chunk]);
    if (this.#waiting.length > waitingBytesMax) this.#socket.pause();
  }

  #serve(bytes: Buffer): void {
    const { reader, printer, runCall, newRequestId } = this.#deps;
    let answers = "";
    let at = 0;
    while (at < bytes.length && !(this.#isLast && at > 0)) {
      const hot = reader.read(bytes, at);
      const message = hot?.codec.decodeJson(bytes, reader.bodyStart, reader.end);
      if (hot === undefined || message === undefined) {
        this.#write(answers);
        this.#depart(bytes.subarray(at));
        return;
      }
      at = reader.end;
      const requestId = newRequestId();
      try {
        const response = runCall(new HotCall(hot.endpoint, "json", requestId, noHeaders, message));
        if (response instanceof Promise) {
          this.#isBusy = true;
          this.#waiting = bytes.subarray(at);
          this.#write(answers);
          void this.#serveLater(hot, requestId, response);
          return;
        }
        answers += printer.ok(hot.codec.encodeJson(response), requestId, this.#isLast);
      } catch (thrown) {
        answers += printer.error(toApiError(thrown), requestId, this.#isLast);
      }
    }
    this.#write(answers);
    if (this.#isLast) this.#socket.end();
  }

  async #serveLater({ codec }: HotEndpoint, requestId: string, response: Promise<Response>): Promise<void> {
    const { printer } = this.#deps;
    let answer: string;
    try {
      answer = printer.ok(codec.encodeJson(await response), requestId, this.#isLast);
    } catch (thrown) {
      answer = printer.error(toApiError(thrown), requestId, this.#isLast);
    }
    if (this.#socket.destroyed) return;
    this.#write(answer);
    this.#isBusy = false;
    const waiting = this.#waiting;
    this.#waiting = nothing;
    if (waiting.length > waitingBytesMax && !this.#socket.writableNeedDrain) this.#socket.resume();
    if (this.#isLast) this.#socket.end();
    else if (waiting.length > 0) this.#serve(waiting);
  }

  #depart(rest: Buffer): void {
    this.#socket.off("data", this.#onData).off("drain", this.#onDrain);
    this.#leave(rest);
  }

  #write(answers: string): void {
    if (answers === "") return;
    // A client that does not take its answers has no more requests read.
    if (!this.#socket.write(answers)) this.#socket.pause();
  }

  #drained(): void {
    this.#quietLooks = 0;
    if (this.#waiting.length <= waitingBytesMax) this.#socket.resume();
  }
}

type Response = MessageInitShape<DescMessage>;
const nothing: Buffer = Buffer.alloc(0);
const noHeaders = {};
