import type { IncomingMessage, ServerResponse } from "node:http";
import type { Http2ServerResponse } from "node:http2";
import type { Log } from "../ambient/log.ts";
import { ApiError, type ErrorCode } from "./api-error.ts";
import { type Fail, type HttpHandler, pathOf, type Responder, type SendError } from "./http-handler.ts";
import { sendError } from "./respond.ts";
import { toApiError } from "./to-api-error.ts";

const publicPortHint = "POST /v1/keys.verifyKey verifies a key, and GET /docs shows all methods";

export type RequestListener = (req: IncomingMessage, res: ServerResponse) => void;

/** Finds the handler of a path. Every request gets an answer, also if its handler fails. */
export function createRequestListener(
  handlers: ReadonlyMap<string, HttpHandler>,
  deps: {
    newRequestId: () => string;
    log: Log;
    /** What is there instead, for callers of a path that is not. */
    notFoundHint?: string;
    /** A request was answered with an error without having become a call. */
    onRefused?: (code: ErrorCode, requestId: string) => void;
  },
): RequestListener {
  const { newRequestId, log, notFoundHint = publicPortHint, onRefused = ignore } = deps;

  return function answer(req, res) {
    const requestId = newRequestId();
    // A client may disconnect in the middle of a request. Without a listener, that error would end the process.
    req.on("error", ignore);
    res.on("error", ignore);
    const fail: Fail = (thrown, failed = "call", send = sendError) => {
      const onError = failed === "call" ? ignore : onRefused;
      answerError(req, res, requestId, thrown, onError, send).catch((unexpected: unknown) => {
        log.error("a request failed", unexpected, { requestId });
        res.destroy();
      });
    };
    try {
      requireHost(req);
      const handler = handlers.get(pathOf(req)) ?? answerNotFound;
      handler(req, res, requestId, fail)?.catch((thrown: unknown) => fail(thrown, "request"));
    } catch (thrown) {
      fail(thrown, "request");
    }
  };

  async function answerError(
    req: IncomingMessage,
    res: ServerResponse,
    requestId: string,
    thrown: unknown,
    onError: (code: ErrorCode, requestId: string) => void,
    send: SendError,
  ): Promise<void> {
    // An immediate answer would be too early: see `HttpHandler`.
    await undefined;
    const error = toApiError(thrown);
    onError(error.code, requestId);
    // A call throws only ApiErrors, and has already logged and counted them.
    if (error !== thrown && error.code === "INTERNAL_SERVER_ERROR")
      log.error("a request failed", error.cause, { requestId });
    // The rest of an oversized body is not waited for.
    if (error.code === "PAYLOAD_TOO_LARGE" && req.httpVersionMajor === 1) res.setHeader("connection", "close");
    if (res.headersSent) res.destroy();
    else send(res, error, requestId);
  }

  async function answerNotFound(req: IncomingMessage, res: ServerResponse, requestId: string): Promise<void> {
    // gRPC clients look for a status in the trailers. Headers count as trailers only if they end the stream.
    if (/^application\/grpc(?!-)/.test(req.headers["content-type"] ?? "") && req.httpVersionMajor >= 2) {
      onRefused("NOT_FOUND", requestId);
      sendUnimplemented(res, requestId);
      return;
    }
    throw nothingHere(notFoundHint);
  }
}

/** The page of every path on the public port that has none. */
export const respondNotFound: Responder = () => {
  throw nothingHere(publicPortHint);
};

function nothingHere(hint: string): ApiError {
  return new ApiError("NOT_FOUND", `there is nothing at this path; ${hint}`);
}

/** Tells a client of gRPC over HTTP/2 that there is no such method. */
export function sendUnimplemented(res: ServerResponse, requestId: string): void {
  const headers = { "content-type": "application/grpc", "grpc-status": "12", "grpc-message": "no such method" };
  const { stream } = res as unknown as Http2ServerResponse;
  stream.respond({ ":status": 200, ...headers, "x-request-id": requestId }, { endStream: true });
}

function ignore(): void {}

/** Node would refuse it too, but with an empty answer. */
function requireHost({ httpVersion, headers }: IncomingMessage): void {
  if (httpVersion === "1.1" && headers.host === undefined) {
    throw new ApiError("BAD_REQUEST", "HTTP/1.1 needs the header Host");
  }
}
