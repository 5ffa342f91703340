import type { IncomingMessage, ServerResponse } from "node:http";
import type { Http2ServerRequest, ServerHttp2Stream } from "node:http2";
import type { DescMessage, MessageInitShape } from "@bufbuild/protobuf";
import {
  type ConnectRouter,
  createConnectRouter,
  createContextKey,
  createContextValues,
  type HandlerContext,
} from "@connectrpc/connect";
import type { UniversalHandler } from "@connectrpc/connect/protocol";
import { ApiError, compressedRefused } from "./api-error.ts";
import { type CallHeaders, type Endpoint, headerOf, type RunCall } from "./call.ts";
import { readMessage } from "./decoding/read-message.ts";
import { rpcErrorHeaders, toConnectError } from "./grpc-errors.ts";
import { type Fail, type HttpHandler, mediaTypeOf } from "./http-handler.ts";
import { InvalidRequest } from "./invalid-request.ts";
import type { OpenStreams } from "./open-streams.ts";
import { bodyBytesMax, readBody } from "./read-body.ts";
import { refuseInProtocol } from "./refuse-in-protocol.ts";
import { remoteAddressOf } from "./remote-address.ts";
import { dialectOf, type RpcDialect } from "./rpc-dialect.ts";
import { shieldStreams } from "./shield-streams.ts";
import { abortSignalOf, sendUniversalResponse } from "./universal-http.ts";

type Answer = () => Promise<MessageInitShape<DescMessage>>;
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
  const router = createConnectRouter({
    acceptCompression: [],
    readMaxBytes: bodyBytesMax,
    jsonOptions: { alwaysEmitImplicit: true },
    interceptors: [shieldStreams],
    shutdownSignal,
  });
  const byMethod = new Map(endpoints.map((endpoint) => [endpoint.method, endpoint]));
  for (const { method } of endpoints) {
    // Connect has a type of implementation per method; this one serves every method.
    const implementation = (_: unknown, { values }: HandlerContext) => (values.get(answerKey) as Answer)();
    router.rpc(method, implementation as never);
  }
  addStreams(router);
  return new Map(
    router.handlers.map((handler) => {
      const endpoint = byMethod.get(handler.method);
      return [handler.requestPath, endpoint ? unary(handler, endpoint, runCall) : streamHandler(handler, openStreams)];
    }),
  );
}

function unary(handler: UniversalHandler, endpoint: Endpoint, runCall: RunCall): HttpHandler {
  return async function handle(req: IncomingMessage, res: ServerResponse, requestId: string, fail: Fail) {
    if (refuseInProtocol(req, fail)) return;
    const { dialect, mediaType } = requireDialect(req);
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
    let failed: ApiError | undefined;
    const answer: Answer = async () => {
      try {
        return await runCall({
          endpoint,
          protocol: dialect.protocol,
          requestId,
          headers,
          remoteAddress,
          read,
          encoded,
        });
      } catch (error) {
        failed = error as ApiError;
        throw toConnectError(failed, requestId);
      }
    };
    const response = await handler({
      httpVersion: req.httpVersion,
      method: "POST",
      url: `http://latchkey${handler.requestPath}`,
      header: protocolHeaders(mediaType),
      body: once(dialect.emptyBody),
      signal: abortSignalOf(res),
      contextValues: createContextValues().set(answerKey, answer),
    });
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
    if (req.method !== "POST") throw new ApiError("METHOD_NOT_ALLOWED", "this method takes POST only");
    const mediaType = mediaTypeOf(req) ?? "";
    if (!handler.supportedContentType(mediaType)) {
      throw new ApiError("UNSUPPORTED_MEDIA_TYPE", "the header Content-Type names no protocol that streams");
    }
    if (req.httpVersionMajor < 2) throw new ApiError("BAD_REQUEST", "this method streams, which needs HTTP/2");
    openStreams?.enter((req as unknown as Http2ServerRequest).stream as ServerHttp2Stream);
    const response = await handler({
      httpVersion: req.httpVersion,
      method: "POST",
      url: `http://latchkey${handler.requestPath}`,
      header: protocolHeaders(mediaType),
      body: req,
      signal: abortSignalOf(res),
    });
    await sendUniversalResponse(response, res, requestId);
  };
}

function requireDialect(req: IncomingMessage): { dialect: RpcDialect; mediaType: string } {
  if (req.method !== "POST") throw new ApiError("METHOD_NOT_ALLOWED", "this method takes POST only");
  const mediaType = mediaTypeOf(req) ?? "";
  const dialect = dialectOf(mediaType);
  if (dialect === undefined) {
    throw new ApiError("UNSUPPORTED_MEDIA_TYPE", "the header Content-Type names no protocol that is served here");
  }
  if (dialect.needsHttp2 && req.httpVersionMajor < 2) throw new ApiError("BAD_REQUEST", "gRPC needs HTTP/2");
  return { dialect, mediaType };
}

function requireKnownHeaders(dialect: RpcDialect, headers: CallHeaders): void {
  if (!/^(identity)?$/i.test(headerOf(headers, dialect.compressionHeader) ?? "")) {
    throw compressedRefused("compressed messages are not accepted");
  }
  const timeout = headerOf(headers, dialect.timeoutHeader);
  if (timeout !== undefined && !dialect.timeoutPattern.test(timeout)) {
    throw new InvalidRequest([{ path: dialect.timeoutHeader, message: "is not a timeout" }]);
  }
}

/**
 * The only header that Connect gets: it repeats the values of others in its errors. It gets no deadline either: its
 * timer fires immediately if the deadline is more than 24 days away. A client disconnects itself when its deadline has
 * passed.
 */
function protocolHeaders(mediaType: string): Headers {
  return new Headers({ "content-type": mediaType });
}

async function* once(bytes: Uint8Array): AsyncIterable<Uint8Array> {
  yield bytes;
}
