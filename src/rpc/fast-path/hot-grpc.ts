import type { IncomingHttpHeaders, ServerHttp2Stream } from "node:http2";
import { constants, sensitiveHeaders } from "node:http2";
import type { DescMessage, MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import { hotMethods } from "../../../gen/latchkey/v1/services.ts";
import type { HotMethod } from "../../codec/codec-runtime.ts";
import { ApiError } from "../api-error.ts";
import type { Call, Endpoint, RunCall } from "../call.ts";
import { readMessage } from "../decoding/read-message.ts";
import { errorTrailers } from "../grpc-errors.ts";
import { type BodyTaker, collectBody, type ReadBody } from "../read-body.ts";
import { remoteAddressOf } from "../remote-address.ts";
import { dialectOf, type RpcDialect } from "../rpc-dialect.ts";
import { toApiError } from "../to-api-error.ts";

/** What the fast path needs of the service: the same as the reference path has. */
interface HotDeps {
  readonly endpoints: readonly Endpoint[];
  readonly runCall: RunCall;
  readonly newRequestId: () => string;
}

/** A hot method and what answers it. */
interface HotEndpoint {
  readonly codec: HotMethod;
  readonly endpoint: Endpoint;
}

/** Returns whether it took the stream. If so, it also answers it. Never throws. */
export type TakeStream = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, flags: number) => boolean;

/** Hot methods over gRPC, directly on HTTP/2 streams: Node's compatibility API costs more than a verification. */
export function createHotGrpc(deps: HotDeps): TakeStream {
  const endpoints = new Map(
    hotEndpointsOf(deps.endpoints).map((hot) => [`/${hot.codec.method.parent.typeName}/${hot.codec.method.name}`, hot]),
  );
  return function take(stream, headers, flags) {
    const hot = endpoints.get(headers[":path"] ?? "");
    if (hot === undefined || !isPlainGrpc(headers, flags)) return false;
    collectBody(stream, headers["content-length"], new Exchange(hot, deps, stream, headers));
    return true;
  };
}

export function hotEndpointsOf(endpoints: readonly Endpoint[]): HotEndpoint[] {
  return hotMethods.map((codec) => {
    const endpoint = endpoints.find(({ method }) => method === codec.method);
    if (endpoint === undefined) throw new Error(`nothing answers ${codec.path}`);
    return { codec, endpoint };
  });
}

/** One call. */
class Exchange implements BodyTaker, Call {
  readonly endpoint: Endpoint;
  readonly protocol = "grpc";
  readonly codec: HotMethod;
  readonly deps: HotDeps;
  readonly stream: ServerHttp2Stream;
  readonly headers: IncomingHttpHeaders;
  requestId = "";
  body: ReadBody = nothing;

  constructor(hot: HotEndpoint, deps: HotDeps, stream: ServerHttp2Stream, headers: IncomingHttpHeaders) {
    this.endpoint = hot.endpoint;
    this.codec = hot.codec;
    this.deps = deps;
    this.stream = stream;
    this.headers = headers;
  }

  takeBody(body: ReadBody): void {
    this.body = body;
    this.requestId = this.deps.newRequestId();
    try {
      const response = this.deps.runCall(this);
      if (response instanceof Promise) response.then((later) => this.send(later)).catch((thrown) => this.fail(thrown));
      else this.send(response);
    } catch (thrown) {
      this.fail(thrown);
    }
  }

  remoteAddress(): string | undefined {
    return remoteAddressOf(this.stream.session);
  }

  /** Called once. If the codec does not understand the whole message, the strict decoder reads or refuses it. */
  read(): MessageShape<DescMessage> {
    const { body } = this;
    // A waiting call must not keep the whole chunk in memory that was read from the connection.
    this.body = nothing;
    if (body instanceof ApiError) throw body;
    const message = isWholeFrame(body) ? this.codec.decodeBinary(body, frameHeadLength) : undefined;
    const { input } = this.endpoint.method;
    return message ?? readMessage(input, { encoding: "proto", bytes: grpc.messageIn(body) });
  }

  send(response: MessageInitShape<DescMessage>): void {
    sendAnswer(this.stream, this.codec.encodeFrame(response), this.requestId);
  }

  fail(thrown: unknown): void {
    try {
      sendGrpcError(this.stream, toApiError(thrown), this.requestId);
    } catch (unexpected) {
      // A late answer is sent outside of the stream's events, where nothing else would catch this.
      this.stream.destroy(unexpected as Error);
    }
  }
}

const nothing = Buffer.alloc(0);
const grpc = dialectOf("application/grpc") as RpcDialect;

/** Whether all headers of the request are supported. Then only its body can be wrong. */
export function isPlainGrpc(headers: IncomingHttpHeaders, flags: number): boolean {
  const type = headers["content-type"];
  if (type !== "application/grpc" && type !== "application/grpc+proto") return false;
  if (headers[":method"] !== "POST" || headers.expect !== undefined) return false;
  const compression = headers[grpc.compressionHeader];
  if (compression !== undefined && compression !== "identity") return false;
  const timeout = headers[grpc.timeoutHeader];
  if (timeout !== undefined && !(typeof timeout === "string" && grpc.timeoutPattern.test(timeout))) return false;
  return (flags & constants.NGHTTP2_FLAG_END_STREAM) === 0;
}

const frameHeadLength = 5;

/** The message in a body that is exactly one uncompressed frame, otherwise undefined. */
export function frameContentOf(body: Buffer): Buffer | undefined {
  return isWholeFrame(body) ? body.subarray(frameHeadLength) : undefined;
}

function isWholeFrame(body: Buffer): boolean {
  return body.length >= frameHeadLength && body[0] === 0 && body.readUInt32BE(1) === body.length - frameHeadLength;
}

const withTrailers = { waitForTrailers: true };
const alone = { endStream: true };
const okTrailers = { "grpc-status": "0" };

function sendAnswer(stream: ServerHttp2Stream, frame: Buffer, requestId: string): void {
  if (stream.headersSent || stream.destroyed || stream.closed) return;
  sendGrpcHeaders(stream, requestId);
  stream.end(frame);
}

/** Also without the compatibility API: under overload most answers are errors, which must not cost more than others. */
export function sendGrpcError(stream: ServerHttp2Stream, error: ApiError, requestId: string): void {
  if (stream.headersSent || stream.destroyed || stream.closed) return;
  const headers = grpcHeaders(requestId);
  // In one frame that ends the stream: clients repeat only calls of which they have seen no more than that.
  for (const [name, value] of Object.entries(errorTrailers(error, requestId))) headers.push(name, value);
  stream.respond(headers, alone);
}

/** The trailers, which say that all went well, are sent when the stream ends. */
export function sendGrpcHeaders(stream: ServerHttp2Stream, requestId: string): void {
  stream.respond(grpcHeaders(requestId), withTrailers);
  stream.on("wantTrailers", sendOk);
}

/** Like Connect, answers with `+proto` even if the request had none. */
function grpcHeaders(requestId: string): RawHeaders {
  const headers = [":status", "200", "content-type", "application/grpc+proto", "x-request-id", requestId] as RawHeaders;
  headers[sensitiveHeaders] = neverIndexed;
  return headers;
}

/** Every id is new. In HTTP/2's header compression table it would only evict useful headers. */
const neverIndexed = ["x-request-id", "grpc-status-details-bin"];

type RawHeaders = string[] & { [sensitiveHeaders]: string[] };

function sendOk(this: ServerHttp2Stream): void {
  this.sendTrailers(okTrailers);
}
