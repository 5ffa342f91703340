import type { IncomingHttpHeaders, ServerHttp2Stream } from "node:http2";
import { constants } from "node:http2";
import type { DescMessage, MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import { ApiError } from "../api-error.ts";
import { handOver } from "../handed-over.ts";
import { collectBody } from "../read-body.ts";
import { dialectOf, type RpcDialect } from "../rpc-dialect.ts";
import { toApiError } from "../to-api-error.ts";
import { HotCall, type HotDeps, type HotEndpoint, hotEndpointsOf } from "./hot-call.ts";

/**
 * Answers whether it took the stream; if so, it sees to its answer, or calls `reference` later, which gives the stream to
 * the reference path. Throws nothing.
 */
export type TakeStream = (
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
  flags: number,
  reference: () => void,
) => boolean;

/** Hot methods over gRPC, on HTTP/2 streams as they are: the compatibility API costs more than a verification. */
export function createHotGrpc(deps: HotDeps): TakeStream {
  const endpoints = new Map(
    hotEndpointsOf(deps.endpoints).map((hot) => [`/${hot.codec.method.parent.typeName}/${hot.codec.method.name}`, hot]),
  );
  return function take(stream, headers, flags, reference) {
    const hot = endpoints.get(headers[":path"] ?? "");
    if (hot === undefined || !isPlain(headers, flags)) return false;
    // A client that breaks off in the middle is nobody's error.
    stream.on("error", ignore);
    collectBody(stream, headers["content-length"], (body) => {
      const message = body instanceof ApiError ? undefined : readFrame(hot, body);
      if (message !== undefined) {
        serve(hot, deps, { stream, headers, reference }, message);
        return;
      }
      handOver(stream, { body });
      reference();
    });
    return true;
  };
}

interface Exchange {
  readonly stream: ServerHttp2Stream;
  readonly headers: IncomingHttpHeaders;
  readonly reference: () => void;
}

function serve(hot: HotEndpoint, deps: HotDeps, exchange: Exchange, message: MessageShape<DescMessage>): void {
  const { stream, headers, reference } = exchange;
  const requestId = deps.newRequestId();
  const send = (response: MessageInitShape<DescMessage>) => {
    sendAnswer(stream, hot.codec.encodeFrame(response), requestId);
  };
  const fail = (thrown: unknown) => {
    if (stream.headersSent || stream.destroyed) return;
    handOver(stream, { body: nothing, failed: { error: toApiError(thrown), requestId } });
    reference();
  };
  try {
    const response = deps.runCall(new HotCall(hot.endpoint, "grpc", requestId, headers, message));
    if (response instanceof Promise) response.then(send).catch(fail);
    else send(response);
  } catch (thrown) {
    fail(thrown);
  }
}

const nothing = Buffer.alloc(0);
const dialects = new Map(
  ["application/grpc", "application/grpc+proto"].map((type) => [type, dialectOf(type) as RpcDialect]),
);

/** Whether nothing about the request but its body can be wrong. */
function isPlain(headers: IncomingHttpHeaders, flags: number): boolean {
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
  if (body.length < frameHeadLength || body[0] !== 0) return undefined;
  if (body.readUInt32BE(1) !== body.length - frameHeadLength) return undefined;
  return codec.decodeBinary(body, frameHeadLength);
}

const withTrailers = { waitForTrailers: true };
const okTrailers = { "grpc-status": "0" };

/** Connect says `+proto` also to those who did not. */
function sendAnswer(stream: ServerHttp2Stream, frame: Buffer, requestId: string): void {
  if (stream.headersSent || stream.destroyed || stream.closed) return;
  stream.respond({ ":status": 200, "content-type": "application/grpc+proto", "x-request-id": requestId }, withTrailers);
  stream.once("wantTrailers", sendOk);
  stream.end(frame);
}

function sendOk(this: ServerHttp2Stream): void {
  this.sendTrailers(okTrailers);
}

function ignore(): void {}
