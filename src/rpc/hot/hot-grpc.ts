import type { IncomingHttpHeaders, ServerHttp2Stream } from "node:http2";
import { constants, sensitiveHeaders } from "node:http2";
import type { DescMessage, MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import { ApiError } from "../api-error.ts";
import { errorTrailers } from "../grpc-errors.ts";
import { handOver } from "../handed-over.ts";
import { type BodyTaker, collectBody } from "../read-body.ts";
import { dialectOf, type RpcDialect } from "../rpc-dialect.ts";
import { toApiError } from "../to-api-error.ts";
import { HotCall, type HotDeps, type HotEndpoint, hotEndpointsOf } from "./hot-call.ts";

/** A stream as Node hands it out. */
export type StreamListener = (
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
  flags: number,
  rawHeaders: string[],
) => void;

/**
 * Answers whether it took the stream; if so, it sees to its answer, or gives the stream to the reference path later. Throws
 * nothing.
 */
export type TakeStream = (...stream: [...Parameters<StreamListener>, reference: StreamListener]) => boolean;

/** Hot methods over gRPC, on HTTP/2 streams as they are: the compatibility API costs more than a verification. */
export function createHotGrpc(deps: HotDeps): TakeStream {
  const endpoints = new Map(
    hotEndpointsOf(deps.endpoints).map((hot) => [`/${hot.codec.method.parent.typeName}/${hot.codec.method.name}`, hot]),
  );
  return function take(stream, headers, flags, rawHeaders, reference) {
    const hot = endpoints.get(headers[":path"] ?? "");
    if (hot === undefined || !isPlainGrpc(headers, flags)) return false;
    const toReference = { flags, rawHeaders, reference };
    collectBody(stream, headers["content-length"], new Exchange(hot, deps, stream, headers, toReference));
    return true;
  };
}

/** What it takes to give a stream to the reference path. */
interface ToReference {
  readonly flags: number;
  readonly rawHeaders: string[];
  readonly reference: StreamListener;
}

/** One call. */
class Exchange implements BodyTaker {
  readonly hot: HotEndpoint;
  readonly deps: HotDeps;
  readonly stream: ServerHttp2Stream;
  readonly headers: IncomingHttpHeaders;
  readonly toReference: ToReference;
  requestId = "";

  constructor(
    hot: HotEndpoint,
    deps: HotDeps,
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    toReference: ToReference,
  ) {
    this.hot = hot;
    this.deps = deps;
    this.stream = stream;
    this.headers = headers;
    this.toReference = toReference;
  }

  takeBody(body: Buffer | ApiError): void {
    const message = body instanceof ApiError ? undefined : readFrame(this.hot, body);
    if (message !== undefined) {
      this.serve(message);
      return;
    }
    handOver(this.stream, body);
    const { flags, rawHeaders, reference } = this.toReference;
    reference(this.stream, this.headers, flags, rawHeaders);
  }

  serve(message: MessageShape<DescMessage>): void {
    this.requestId = this.deps.newRequestId();
    try {
      const call = new HotCall(this.hot.endpoint, "grpc", this.requestId, this.headers, message);
      const response = this.deps.runCall(call);
      if (response instanceof Promise) response.then((later) => this.send(later)).catch((thrown) => this.fail(thrown));
      else this.send(response);
    } catch (thrown) {
      this.fail(thrown);
    }
  }

  send(response: MessageInitShape<DescMessage>): void {
    sendAnswer(this.stream, this.hot.codec.encodeFrame(response), this.requestId);
  }

  fail(thrown: unknown): void {
    sendGrpcError(this.stream, toApiError(thrown), this.requestId);
  }
}

const dialects = new Map(
  ["application/grpc", "application/grpc+proto"].map((type) => [type, dialectOf(type) as RpcDialect]),
);

/** Whether nothing about the request but its body can be wrong. */
export function isPlainGrpc(headers: IncomingHttpHeaders, flags: number): boolean {
  const dialect = dialects.get(headers["content-type"] ?? "");
  if (dialect === undefined || headers[":method"] !== "POST" || headers.expect !== undefined) return false;
  const compression = headers[dialect.compressionHeader];
  if (compression !== undefined && compression !== "identity") return false;
  const timeout = headers[dialect.timeoutHeader];
  if (timeout !== undefined && !(typeof timeout === "string" && dialect.timeoutPattern.test(timeout))) return false;
  return (flags & constants.NGHTTP2_FLAG_END_STREAM) === 0;
}

const frameHeadLength = 5;

/** The message of a body that is one whole frame, not compressed; otherwise undefined. */
function readFrame({ codec }: HotEndpoint, body: Buffer): MessageShape<DescMessage> | undefined {
  return isWholeFrame(body) ? codec.decodeBinary(body, frameHeadLength) : undefined;
}

/** What is in a body that is one whole frame, not compressed; otherwise undefined. */
export function frameContentOf(body: Buffer): Buffer | undefined {
  return isWholeFrame(body) ? body.subarray(frameHeadLength) : undefined;
}

function isWholeFrame(body: Buffer): boolean {
  return body.length >= frameHeadLength && body[0] === 0 && body.readUInt32BE(1) === body.length - frameHeadLength;
}

const withTrailers = { waitForTrailers: true };
const okTrailers = { "grpc-status": "0" };

function sendAnswer(stream: ServerHttp2Stream, frame: Buffer, requestId: string): void {
  if (stream.headersSent || stream.destroyed || stream.closed) return;
  sendGrpcHeaders(stream, requestId);
  stream.on("wantTrailers", sendOk);
  stream.end(frame);
}

/** Here too without the compatibility API: under overload most answers are errors, which must not cost more than the others. */
export function sendGrpcError(stream: ServerHttp2Stream, error: ApiError, requestId: string): void {
  if (stream.headersSent || stream.destroyed || stream.closed) return;
  sendGrpcHeaders(stream, requestId);
  const trailers = errorTrailers(error, requestId);
  stream.on("wantTrailers", () => stream.sendTrailers(trailers));
  stream.end();
}

/** Connect says `+proto` also to those who did not. */
export function sendGrpcHeaders(stream: ServerHttp2Stream, requestId: string): void {
  const headers = [":status", "200", "content-type", "application/grpc+proto", "x-request-id", requestId] as RawHeaders;
  headers[sensitiveHeaders] = neverIndexed;
  stream.respond(headers, withTrailers);
}

/** An id comes but once: in the tables that compress headers it would only push others out. */
const neverIndexed = ["x-request-id"];

type RawHeaders = string[] & { [sensitiveHeaders]: string[] };

function sendOk(this: ServerHttp2Stream): void {
  this.sendTrailers(okTrailers);
}
