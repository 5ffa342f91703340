import type { DescMessage, MessageInitShape } from "@bufbuild/protobuf";
import type { Log } from "../../ambient/log.ts";
import { type MaybePromise, mapOutcome } from "../../domain/maybe-promise.ts";
import type { ErrorCode } from "../api-error.ts";
import type { RunCall } from "../call.ts";
import { pathOf, type Responder } from "../http-handler.ts";
import { AnswerPrinter, type PrintedAnswer } from "../http1-response.ts";
import { encodeJson, JsonCall, type JsonRequest, noHeaders, type RoutedMethod } from "../json-call.ts";
import { bodyBytesMax } from "../read-body.ts";
import type { OverSocket } from "../remote-address.ts";
import { respondNotFound } from "../request-listener.ts";
import { errorAnswer } from "../respond.ts";
import { toApiError } from "../to-api-error.ts";
import { RequestReader } from "./request-reader.ts";

/** The connection that an answer is for. */
interface AnsweredConnection {
  /** Whether this is the connection's last answer. The answer then tells the client. */
  readonly isLast: boolean;
  readonly socket: OverSocket["socket"];
}

export interface Http1FastPathDeps {
  readonly methods: readonly RoutedMethod[];
  /** What answers other requests, by their paths. */
  readonly pages: ReadonlyMap<string, Responder>;
  /** Where only Node can answer. */
  readonly nodePaths: ReadonlySet<string>;
  readonly runCall: RunCall;
  readonly newRequestId: () => string;
  readonly log: Log;
  /** A request was answered with an error without having become a call. */
  readonly onRefused: (code: ErrorCode, requestId: string) => void;
  readonly httpDate: () => string;
  readonly keepAliveMs: number;
  /** Whether calls are asked for their trace context. */
  readonly isTracing?: boolean;
  /** Whether answers do not depend on the origin of a request. */
  readonly ignoresOrigin: boolean;
}

type JsonTarget = { readonly readsJson: true; readonly method: RoutedMethod };
type PageTarget = { readonly readsJson: false; readonly page: Responder };

/**
 * Answers requests of HTTP/1.1 without `node:http`, whose request and response objects cost several times as much as a
 * verification.
 */
export class Http1FastPath {
  readonly reader: RequestReader<JsonTarget | PageTarget>;
  readonly #printer: AnswerPrinter;
  readonly #deps: Http1FastPathDeps;

  constructor(deps: Http1FastPathDeps) {
    const { methods, pages, nodePaths, ignoresOrigin } = deps;
    const json = new Map<string, JsonTarget>();
    const hot = new Map<string, JsonTarget>();
    for (const method of methods) {
      if (method.verb !== "POST") continue;
      const target = { readsJson: true, method } as const;
      json.set(method.path, target);
      if (method.codec !== undefined) hot.set(method.path, target);
    }
    const pageTargets = new Map(Array.from(pages, ([path, page]) => [path, pageTarget(page)]));
    const nothing = pageTarget(respondNotFound);
    const find = (method: string, url: string) => {
      const path = pathOf({ url });
      const byPost = method === "POST" ? json.get(path) : undefined;
      return byPost ?? pageTargets.get(path) ?? (nodePaths.has(path) ? undefined : nothing);
    };
    this.reader = new RequestReader({ hot, find, ignoresOrigin, bodyBytesMax });
    this.#printer = new AnswerPrinter(deps.httpDate, deps.keepAliveMs);
    this.#deps = deps;
  }

  /** The whole response to the supported request that was read last. Never throws or rejects. */
  answer(bytes: Buffer, connection: AnsweredConnection): MaybePromise<PrintedAnswer> {
    const target = this.reader.target as JsonTarget | PageTarget;
    return target.readsJson
      ? this.#answerCall(target.method, bytes, connection)
      : this.#answerPage(target.page, bytes, connection);
  }

  #answerCall(method: RoutedMethod, bytes: Buffer, connection: AnsweredConnection): MaybePromise<PrintedAnswer> {
    const { bodyStart, end } = this.reader;
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

  #requestOf({ endpoint }: RoutedMethod, bytes: Buffer, { socket }: AnsweredConnection): JsonRequest {
    // A public call that is not traced needs neither headers nor address.
    if (endpoint.isPublic && !this.#deps.isTracing) return noHeaders;
    return { headers: this.reader.headers(bytes), socket };
  }

  #answerLater(
    method: RoutedMethod,
    requestId: string,
    response: Promise<MessageInitShape<DescMessage>>,
    connection: AnsweredConnection,
  ): Promise<PrintedAnswer> {
    const print = (message: MessageInitShape<DescMessage>) =>
      this.#printer.ok(encodeJson(method, message), requestId, connection.isLast);
    return response.then(print).catch((thrown: unknown) => this.#fail(thrown, requestId, connection));
  }

  #answerPage(page: Responder, bytes: Buffer, connection: AnsweredConnection): MaybePromise<PrintedAnswer> {
    const { method, url } = this.reader;
    const requestId = this.#deps.newRequestId();
    const head = { method, url, headers: this.reader.headers(bytes), socket: connection.socket };
    const isHead = method === "HEAD";
    return mapOutcome(
      () => page(head, requestId),
      (answer) => this.#printer.print(answer, connection.isLast, isHead),
      (thrown) => {
        this.#deps.onRefused(toApiError(thrown).code, requestId);
        return this.#fail(thrown, requestId, connection, isHead);
      },
    );
  }

  #fail(thrown: unknown, requestId: string, connection: AnsweredConnection, isHead = false): PrintedAnswer {
    const error = toApiError(thrown);
    // A call throws only ApiErrors, and has already logged and counted them.
    if (error !== thrown) this.#deps.log.error("a request failed", error.cause, { requestId });
    return this.#printer.print(errorAnswer(error, requestId), connection.isLast, isHead);
  }
}

function pageTarget(page: Responder): PageTarget {
  return { readsJson: false, page };
}
