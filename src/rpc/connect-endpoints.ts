import type { IncomingMessage, ServerResponse } from "node:http";
import type { Http2ServerRequest, ServerHttp2Stream } from "node:http2";
import {
  Code,
  type ConnectRouter,
  createContextKey,
  createContextValues,
  type HandlerContext,
} from "@connectrpc/connect";
import type { UniversalHandler, UniversalServerRequest, UniversalServerResponse } from "@connectrpc/connect/protocol";
import { codeToHttpStatus, errorToJsonBytes } from "@connectrpc/connect/protocol-connect";
import { ApiError, compressedRefused } from "./api-error.ts";
import { type AnswerMessage, type CallHeaders, type Endpoint, headerOf, type RunCall } from "./call.ts";
import { readMessage } from "./decoding/read-message.ts";
import { errorTrailers, rpcErrorHeaders, toConnectError } from "./grpc-errors.ts";
import { type Fail, type HttpHandler, mediaTypeOf, queryOf, type SendError } from "./http-handler.ts";
import { invalid } from "./invalid-request.ts";
import type { OpenStreams } from "./open-streams.ts";
import { bodyBytesMax, readBody } from "./read-body.ts";
import { remoteAddressOf } from "./remote-address.ts";
import { jsonAnswer, sendAnswer } from "./respond.ts";
import { dialectOf, type RpcDialect } from "./rpc-dialect.ts";
import { createShieldedRouter } from "./shield-streams.ts";
import { abortSignalOf, sendUniversalResponse } from "./universal-http.ts";

type Answer = () => Promise<AnswerMessage>;
const answerKey = createContextKey<Answer | undefined>(undefined);

/**
 * gRPC, gRPC-Web and Connect, served with the Connect library. It frames messages, we decode them: its own decoding
 * repeats input in errors, ignores unknown fields and decompresses bombs. So for a unary method Connect gets an empty
 * message. The implementation that it calls is our pipeline, which decodes the real one.
 */
export function createConnectEndpoints(options: {
  endpoints: readonly Endpoint[];
  /** Registers the streaming methods. Connect decodes their messages itself. */
  addStreams: (router: ConnectRouter) => void;
  runCall: RunCall;
  shutdownSignal: AbortSignal;
  /** Counts and limits the calls of streaming methods. */
  openStreams: OpenStreams;
}): Map<string, HttpHandler> {
  const { endpoints, addStreams, runCall, shutdownSignal, openStreams } = options;
  const router = createShieldedRouter(bodyBytesMax, shutdownSignal);
  const byMethod = new Map(endpoints.map((endpoint) => [endpoint.method, endpoint]));
  for (const { method } of endpoints) {
    // Connect has a type of implementation per method; this one serves every method.
    const implementation = (_: unknown, { values }: HandlerContext) => (values.get(answerKey) as Answer)();
    router.rpc(method, implementation as never);
  }
  addStreams(router);
  const handlers = router.handlers.map((handler) => {
    const endpoint = byMethod.get(handler.method);
    return [
      handler.requestPath,
      endpoint ? unary(handler, endpoint, runCall) : streamHandler(handler, openStreams),
    ] as const;
  });
  return new Map(handlers);
}

function unary(handler: UniversalHandler, endpoint: Endpoint, runCall: RunCall): HttpHandler {
  return async function handle(req: IncomingMessage, res: ServerResponse, requestId: string, fail: Fail) {
    if (refuseInProtocol(req, fail)) return;
    const mediaType = mediaTypeOfPost(req);
    const dialect = requireDialect(req, mediaType);
    const { headers } = req;
    // The error for a body that is too large is kept for later: Connect must write it, in the caller's protocol.
    const body = await readBody(req).catch((error: unknown) => {
      if (error instanceof ApiError) return error;
      throw error;
    });
    const encoded = () => {
      if (body instanceof ApiError) throw body;
      requireKnownHeaders(dialect, headers);
      return { encoding: dialect.encoding, bytes: dialect.messageIn(body) };
    };
    const read = () => readMessage(endpoint.method.input, encoded());
    const remoteAddress = () => remoteAddressOf(req);
    const call = { endpoint, protocol: dialect.protocol, requestId, headers, remoteAddress, read, encoded };
    let failed: ApiError | undefined;
    const answer: Answer = async () => {
      try {
        return await runCall(call);
      } catch (error) {
        failed = error as ApiError;
        throw toConnectError(failed, requestId);
      }
    };
    const contextValues = createContextValues().set(answerKey, answer);
    const response = await callConnect(handler, req, res, { mediaType, body: once(dialect.emptyBody), contextValues });
    // Set here because Connect drops header names that belong to its protocols.
    const added = Object.entries(failed === undefined ? {} : rpcErrorHeaders(failed, dialect.protocol));
    for (const [name, value] of added)
      (dialect.protocol === "grpc" ? response.trailer : response.header)?.set(name, value);
    await sendUniversalResponse(response, res, requestId);
  };
}

/** A streaming method. Connect decodes its messages itself. Without `openStreams` the number of calls has no limit. */
export function streamHandler(handler: UniversalHandler, openStreams?: OpenStreams): HttpHandler {
  return async function handle(req: IncomingMessage, res: ServerResponse, requestId: string, fail: Fail) {
    if (refuseInProtocol(req, fail)) return;
    const mediaType = mediaTypeOfPost(req);
    if (!handler.supportedContentType(mediaType)) {
      throw new ApiError("UNSUPPORTED_MEDIA_TYPE", "the header Content-Type names no protocol that streams");
    }
    if (req.httpVersionMajor < 2) throw new ApiError("BAD_REQUEST", "this method streams, which needs HTTP/2");
    openStreams?.enter((req as unknown as Http2ServerRequest).stream as ServerHttp2Stream);
    await sendUniversalResponse(await callConnect(handler, req, res, { mediaType, body: req }), res, requestId);
  };
}

/**
 * The media type is the only header that Connect gets: it repeats the values of others in its errors. It gets no deadline
 * either: its timer fires immediately if the deadline is more than 24 days away. A client disconnects itself when its deadline
 * has passed.
 */
function callConnect(
  handler: UniversalHandler,
  { httpVersion }: IncomingMessage,
  res: ServerResponse,
  { mediaType, ...content }: Pick<UniversalServerRequest, "body" | "contextValues"> & { readonly mediaType: string },
): Promise<UniversalServerResponse> {
  const url = `http://latchkey${handler.requestPath}`;
  const header = new Headers({ "content-type": mediaType });
  return handler({ httpVersion, method: "POST", url, header, signal: abortSignalOf(res), ...content });
}

function mediaTypeOfPost(req: IncomingMessage): string {
  if (req.method !== "POST") throw new ApiError("METHOD_NOT_ALLOWED", "this method takes POST only");
  return mediaTypeOf(req) ?? "";
}

function requireDialect(req: IncomingMessage, mediaType: string): RpcDialect {
  const dialect = dialectOf(mediaType);
  if (dialect === undefined) {
    throw new ApiError("UNSUPPORTED_MEDIA_TYPE", "the header Content-Type names no protocol that is served here");
  }
  if (dialect.needsHttp2 && req.httpVersionMajor < 2) throw new ApiError("BAD_REQUEST", "gRPC needs HTTP/2");
  return dialect;
}

function requireKnownHeaders(dialect: RpcDialect, headers: CallHeaders): void {
  if (!/^(identity)?$/i.test(headerOf(headers, dialect.compressionHeader) ?? "")) {
    throw compressedRefused("compressed messages are not accepted");
  }
  const timeout = headerOf(headers, dialect.timeoutHeader);
  if (timeout !== undefined && !dialect.timeoutPattern.test(timeout)) {
    throw invalid(dialect.timeoutHeader, "is not a timeout");
  }
}

async function* once(bytes: Uint8Array): AsyncIterable<Uint8Array> {
  yield bytes;
}

/**
 * Refuses what we do not serve of Connect and gRPC-Web, as clients of these protocols understand it. Returns whether it
 * did. Anything else that is wrong with a request is not known to be of one of these protocols.
 */
function refuseInProtocol(req: IncomingMessage, fail: Fail): boolean {
  const mediaType = mediaTypeOf(req) ?? "";
  if (req.method === "GET" && /(^|&)encoding=/.test(queryOf(req))) {
    const message = "GET requests of Connect are not served; send a POST";
    fail(new ApiError("METHOD_NOT_ALLOWED", message), "request", sendConnectError);
    return true;
  }
  if (req.method === "POST" && /^application\/grpc-web-text(\+proto)?$/.test(mediaType)) {
    const message = "application/grpc-web-text is not served; send application/grpc-web";
    const error = new ApiError("UNSUPPORTED_MEDIA_TYPE", message, { rpc: Code.Unimplemented });
    fail(error, "request", sendGrpcWebError(mediaType));
    return true;
  }
  return false;
}

const sendConnectError: SendError = (res, error, requestId) => {
  const body = Buffer.from(errorToJsonBytes(toConnectError(error, requestId), undefined));
  const headers = Object.entries(rpcErrorHeaders(error, "connect")).flat();
  sendAnswer(res, jsonAnswer(codeToHttpStatus(error.rpc), body, ["x-request-id", requestId, ...headers]));
};

/** As headers without a body. */
const sendGrpcWebError =
  (mediaType: string): SendError =>
  (res, error, requestId) => {
    const headers = { "content-type": mediaType, "content-length": 0, "x-request-id": requestId };
    if (!res.destroyed) res.writeHead(200, { ...headers, ...errorTrailers(error, requestId) }).end();
  };
