import type { DescMessage, MessageInitShape } from "@bufbuild/protobuf";
import type { Log } from "../../ambient/log.ts";
import type { RunCall } from "../call.ts";
import { AnswerPrinter } from "../http1-response.ts";
import { encodeJson, JsonCall, type JsonRequest, type RoutedMethod, requestByHand } from "../json-call.ts";
import { bodyBytesMax } from "../read-body.ts";
import { toApiError } from "../to-api-error.ts";
import { RequestReader } from "./request-reader.ts";

/** The connection that an answer is for. */
interface AnsweredConnection {
  /** Whether this is the connection's last answer. The answer then tells the client. */
  readonly isLast: boolean;
  readonly socket: JsonRequest["socket"];
}

export interface JsonByHandDeps {
  readonly methods: readonly RoutedMethod[];
  readonly runCall: RunCall;
  readonly newRequestId: () => string;
  readonly log: Log;
  readonly httpDate: () => string;
  readonly keepAliveMs: number;
  /** Whether calls are asked for their trace context. */
  readonly isTracing?: boolean;
}

/**
 * Answers methods as JSON over HTTP/1.1 without `node:http`, whose request and response objects cost several times as much
 * as a verification.
 */
export class JsonByHand {
  readonly reader: RequestReader<RoutedMethod>;
  readonly #printer: AnswerPrinter;
  readonly #deps: JsonByHandDeps;

  constructor(deps: JsonByHandDeps) {
    const byPost = deps.methods.filter(({ verb }) => verb === "POST");
    // Paths are compared in this order, so those of hot methods come first.
    const hotFirst = byPost.toSorted((a, b) => Number(a.codec === undefined) - Number(b.codec === undefined));
    this.reader = new RequestReader(new Map(hotFirst.map((method) => [method.path, method])), bodyBytesMax);
    this.#printer = new AnswerPrinter(deps.httpDate, deps.keepAliveMs);
    this.#deps = deps;
  }

  /** The whole response to the supported request that was read last. Never throws or rejects. */
  answer(bytes: Buffer, connection: AnsweredConnection): string | Promise<string> {
    const { target, bodyStart, end } = this.reader;
    const method = target as RoutedMethod;
    const requestId = this.#deps.newRequestId();
    const request = this.#requestOf(method, bytes, connection);
    try {
      const response = this.#deps.runCall(new JsonCall(method, requestId, request, bytes, bodyStart, end));
      if (response instanceof Promise) return this.#answerLater(method, requestId, response, connection);
      return this.#printer.ok(encodeJson(method, response), requestId, connection.isLast);
    } catch (thrown) {
      return this.#fail(thrown, requestId, connection);
    }
  }

  #requestOf({ endpoint: { isPublic } }: RoutedMethod, bytes: Buffer, { socket }: AnsweredConnection): JsonRequest {
    const { reader } = this;
    // Of a public call that is not traced neither headers nor address are needed.
    const trace = this.#deps.isTracing ? reader.traceHeaders(bytes) : undefined;
    if (isPublic) return trace === undefined ? requestByHand : { headers: trace, socket };
    const headers = reader.callHeaders(bytes);
    return { headers: trace === undefined ? headers : { ...headers, ...trace }, socket };
  }

  #answerLater(
    method: RoutedMethod,
    requestId: string,
    response: Promise<MessageInitShape<DescMessage>>,
    connection: AnsweredConnection,
  ): Promise<string> {
    const fail = (thrown: unknown) => this.#fail(thrown, requestId, connection);
    return response.then((message) => {
      try {
        return this.#printer.ok(encodeJson(method, message), requestId, connection.isLast);
      } catch (thrown) {
        return fail(thrown);
      }
    }, fail);
  }

  #fail(thrown: unknown, requestId: string, connection: AnsweredConnection): string {
    const error = toApiError(thrown);
    // A call throws only ApiErrors, and has already logged and counted them.
    if (error !== thrown) this.#deps.log.error("a request failed", error.cause, { requestId });
    return this.#printer.error(error, requestId, connection.isLast);
  }
}
