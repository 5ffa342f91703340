import type { ServerHttp2Stream } from "node:http2";
import { fromBinary } from "@bufbuild/protobuf";
import {
  Health,
  HealthCheckRequestSchema,
  type HealthCheckResponse_ServingStatus as Status,
} from "../../gen/health/v1/health_pb.js";
import { ApiError, type ErrorCode } from "./api-error.ts";
import { frameContentOf, isPlainGrpc, sendGrpcError, sendGrpcHeaders, type TakeStream } from "./fast-path/hot-grpc.ts";
import type { OpenStreams } from "./open-streams.ts";
import { collectBody, type ReadBody } from "./read-body.ts";
import type { Readiness } from "./readiness.ts";
import { toApiError } from "./to-api-error.ts";

export interface HealthWatchDeps {
  readonly readiness: Readiness;
  readonly statusOf: (service: string) => Status;
  /** Fires when the service shuts down; then every watch ends. */
  readonly shutdownSignal: AbortSignal;
  readonly watches: OpenStreams;
  readonly newRequestId: () => string;
  /** A stream was answered with an error. */
  readonly onRefused: (code: ErrorCode, requestId: string) => void;
}

interface Watch {
  readonly service: string;
  /** The status that its client has received last. */
  sent: Status;
}

/**
 * `Health/Watch` over gRPC, directly on HTTP/2 streams. A watch stays open as long as its client wants, and Connect
 * would use fifty kilobytes for each. Connect serves other protocols, and requests with unusual headers.
 */
export function createHealthWatch(deps: HealthWatchDeps): TakeStream {
  const { readiness, statusOf, shutdownSignal, newRequestId } = deps;
  const path = `/${Health.typeName}/${Health.method.watch.name}`;
  const watches = new Map<ServerHttp2Stream, Watch>();
  notifyWatches();

  function open(stream: ServerHttp2Stream, body: ReadBody): void {
    const requestId = newRequestId();
    let service: string;
    try {
      service = readService(body);
      deps.watches.enter(stream);
    } catch (thrown) {
      const error = toApiError(thrown);
      deps.onRefused(error.code, requestId);
      sendGrpcError(stream, error, requestId);
      return;
    }
    const sent = statusOf(service);
    watches.set(stream, { service, sent });
    stream.on("close", () => watches.delete(stream));
    sendGrpcHeaders(stream, requestId);
    stream.write(frameOf(sent));
    if (shutdownSignal.aborted) stream.end();
  }

  /** Notifies all watches of every change, and ends them at shutdown. Never rejects. */
  async function notifyWatches(): Promise<void> {
    while (!shutdownSignal.aborted) {
      await readiness.changed(shutdownSignal);
      for (const [stream, watch] of watches) {
        const status = statusOf(watch.service);
        if (status === watch.sent) continue;
        watch.sent = status;
        attempt(stream, () => stream.write(frameOf(status)));
      }
    }
    for (const stream of watches.keys()) attempt(stream, () => stream.end());
  }

  return function take(stream, headers, flags) {
    if (headers[":path"] !== path || !isPlainGrpc(headers, flags)) return false;
    collectBody(stream, headers["content-length"], { takeBody: (body) => open(stream, body) });
    return true;
  };
}

/** Throws `ApiError` if the body is not exactly one message. */
function readService(body: ReadBody): string {
  if (body instanceof ApiError) throw body;
  const content = frameContentOf(body);
  if (content === undefined) throw unreadable;
  try {
    return fromBinary(HealthCheckRequestSchema, content).service;
  } catch {
    throw unreadable;
  }
}

/** The same error as Connect's for other streams. */
const unreadable = new ApiError("BAD_REQUEST", "a message of the stream could not be read");

/** A failure of one watch must not keep the others from being notified. */
function attempt(stream: ServerHttp2Stream, work: () => unknown): void {
  try {
    if (!stream.closed && !stream.destroyed) work();
  } catch {
    stream.destroy();
  }
}

/** A `HealthCheckResponse` in a gRPC frame. Its status is below 128, so one byte holds it. */
function frameOf(status: Status): Buffer {
  const statusField = 1 << 3;
  return Buffer.of(0, 0, 0, 0, 2, statusField, status);
}
