import { create, type DescMessage, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { ConnectError } from "@connectrpc/connect";
import { setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import { BadRequestSchema, RetryInfoSchema } from "../../gen/google/rpc/error_details_pb.js";
import { ErrorDetailSchema } from "../../gen/latchkey/v1/errors_pb.js";
import { type ApiError, docsOf } from "./api-error.ts";
import type { Protocol } from "./call.ts";
import { InvalidRequest } from "./invalid-request.ts";
import { errorHeaders } from "./respond.ts";
import { toNodeHeaders } from "./universal-http.ts";

/** The error for Connect, which writes it in the caller's protocol. Headers are apart: see `rpcErrorHeaders`. */
export function toConnectError(error: ApiError, requestId: string): ConnectError {
  const { code, retryAfterMs } = error;
  const { message, violations } = shortened(error);
  const detail = {
    code,
    docs: docsOf(code),
    requestId,
    violations: [...violations],
    retryDelayMs: retryAfterMs,
  };
  const thrown = new ConnectError(message, error.rpc, undefined, [{ desc: ErrorDetailSchema, value: detail }]);
  if (violations.length > 0) {
    const fieldViolations = violations.map(({ path, message }) => ({ field: path, description: message }));
    thrown.details.push(encodeDetail(BadRequestSchema, { fieldViolations }));
  }
  if (retryAfterMs !== undefined && mayRepeat(error)) {
    thrown.details.push(encodeDetail(RetryInfoSchema, { retryDelay: durationFromMs(Math.ceil(retryAfterMs)) }));
  }
  return thrown;
}

/** Over Connect an answer has each violation four times, two of them in base64: it has room for fewer than one in JSON. */
const textMax = 600;

function shortened(error: ApiError): Pick<ApiError, "message" | "violations"> {
  const isLong = error.violations.length > 1 && error.message.length > textMax;
  return isLong ? new InvalidRequest(error.violations, textMax) : error;
}

/** In binary: to a detail that is not encoded yet, Connect adds its JSON, for which 4 KB have no room. */
function encodeDetail<Desc extends DescMessage>(desc: Desc, value: MessageInitShape<Desc>) {
  return { type: desc.typeName, value: toBinary(desc, create(desc, value)) };
}

/** Whether clients that repeat calls by themselves may do so. Not if the call may have done what it asks for. */
function mayRepeat({ code, isRepeatable }: ApiError): boolean {
  return code !== "SERVICE_UNAVAILABLE" || isRepeatable;
}

/** Headers that say what a client can do next. Over gRPC they are sent with the trailers. */
export function rpcErrorHeaders(error: ApiError, protocol: Protocol): Record<string, string> {
  if (protocol === "connect") return errorHeaders(error);
  if (error.isCompressed) return { "grpc-accept-encoding": "identity" };
  return { ...errorHeaders(error), ...pushback(error) };
}

/** How long a client of gRPC that repeats calls by itself waits before it does. A negative number forbids it. */
function pushback(error: ApiError): Record<string, string> {
  const { code, retryAfterMs = 0 } = error;
  if (code !== "SERVICE_UNAVAILABLE") return {};
  return { "grpc-retry-pushback-ms": mayRepeat(error) ? String(Math.ceil(retryAfterMs)) : "-1" };
}

const encoded = new WeakMap<ApiError, { trailers: Trailers; details: Buffer; idAt: number }>();
type Trailers = Readonly<Record<string, string>>;
const detailsName = "grpc-status-details-bin";

/**
 * The gRPC trailers for an error, the same as Connect would send. Encoding takes longer than a verification. So an
 * error that many callers get is encoded once, and each caller's id is put in: all ids have the same length.
 */
export function errorTrailers(error: ApiError, requestId: string): Trailers {
  const known = encoded.get(error);
  if (known === undefined) return encode(error, requestId);
  known.details.write(requestId, known.idAt, "latin1");
  return { ...known.trailers, [detailsName]: known.details.toString("base64").replace(/=+$/, "") };
}

function encode(error: ApiError, requestId: string): Trailers {
  const headers = new Headers(rpcErrorHeaders(error, "grpc"));
  const trailers = toNodeHeaders(setTrailerStatus(headers, toConnectError(error, requestId)));
  const details = Buffer.from(trailers[detailsName] ?? "", "base64");
  encoded.set(error, { trailers, details, idAt: details.indexOf(requestId, 0, "latin1") });
  return trailers;
}
