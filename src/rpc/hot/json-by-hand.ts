import type { DescMessage, MessageInitShape } from "@bufbuild/protobuf";
import { AnswerPrinter } from "../http1-response.ts";
import { JsonCall, requestByHand } from "../json-call.ts";
import { bodyBytesMax } from "../read-body.ts";
import { toApiError } from "../to-api-error.ts";
import { type HotDeps, type HotEndpoint, hotEndpointsOf } from "./hot-endpoints.ts";
import { RequestReader } from "./request-reader.ts";

/** The connection that an answer is for. */
interface AnsweredConnection {
  /** Whether this is the connection's last answer. The answer then tells the client. */
  readonly isLast: boolean;
}

/**
 * Answers hot methods as JSON over HTTP/1.1 without `node:http`, whose request and response objects cost several times
 * as much as a verification.
 */
export class JsonByHand {
  readonly reader: RequestReader<HotEndpoint>;
  readonly #printer: AnswerPrinter;
  readonly #deps: HotDeps;

  constructor(deps: HotDeps & { readonly httpDate: () => string; readonly keepAliveMs: number }) {
    // Headers are read and dropped, so a method that needs one is not served here.
    const open = hotEndpointsOf(deps.endpoints).filter(({ endpoint }) => endpoint.isPublic);
    this.reader = new RequestReader(new Map(open.map((hot) => [hot.codec.path, hot])), bodyBytesMax);
    this.#printer = new AnswerPrinter(deps.httpDate, deps.keepAliveMs);
    this.#deps = deps;
  }

  /** The whole response to the supported request that was read last. Never throws or rejects. */
  answer(bytes: Buffer, connection: AnsweredConnection): string | Promise<string> {
    const { target, bodyStart, end } = this.reader;
    const method = target as HotEndpoint;
    const requestId = this.#deps.newRequestId();
    try {
      const response = this.#deps.runCall(new JsonCall(method, requestId, requestByHand, bytes, bodyStart, end));
      if (response instanceof Promise) return this.#answerLater(method, requestId, response, connection);
      return this.#printer.ok(method.codec.encodeJson(response), requestId, connection.isLast);
    } catch (thrown) {
      return this.#printer.error(toApiError(thrown), requestId, connection.isLast);
    }
  }

  #answerLater(
    { codec }: HotEndpoint,
    requestId: string,
    response: Promise<MessageInitShape<DescMessage>>,
    connection: AnsweredConnection,
  ): Promise<string> {
    const fail = (thrown: unknown) => this.#printer.error(toApiError(thrown), requestId, connection.isLast);
    return response.then((message) => {
      try {
        return this.#printer.ok(codec.encodeJson(message), requestId, connection.isLast);
      } catch (thrown) {
        return fail(thrown);
      }
    }, fail);
  }
}
