import { ConnectError } from "@connectrpc/connect";
import { setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import { ErrorDetailSchema } from "../../gen/latchkey/v1/errors_pb.js";
import { type ApiError, docsOf } from "./api-error.ts";
import type { Protocol } from "./call.ts";
import { errorHeaders } from "./respond.ts";
import { toNodeHeaders } from "./universal-http.ts";

/** The error for Connect, which writes it in the caller's protocol. Headers are apart: see `rpcErrorHeaders`. */
export function toConnectError(error: ApiError, requestId: string): ConnectError {
  const { code, message, violations, retryAfterMs } = error;
  const detail = {
    code,
    docs: docsOf(code),
    requestId,
    violations: violations.map((violation) => ({ ...violation })),
    ...(retryAfterMs !== undefined && { retryDelayMs: retryAfterMs }),
  };
  return new ConnectError(message, error.rpc, undefined, [{ desc: ErrorDetailSchema, value: detail }]);
}

/** Headers that say what a client can do next. Over gRPC they are sent with the trailers. */
export function rpcErrorHeaders(error: ApiError, protocol: Protocol): Record<string, string> {
  if (protocol === "connect") return errorHeaders(error);
  if (error.isCompressed) return { "grpc-accept-encoding": "identity" };
  return { ...errorHeaders(error), ...pushback(error) };
}

/**
 * How long a client of gRPC that repeats calls by itself waits before it does. A negative number forbids it: the call may
 * have done what it asks for.
 */
function pushback({ code, retryAfterMs = 0, isRepeatable }: ApiError): Record<string, string> {
  if (code !== "SERVICE_UNAVAILABLE") return {};
  return { "grpc-retry-pushback-ms": isRepeatable ? String(Math.ceil(retryAfterMs)) : "-1" };
}

const encoded = new WeakMap<
  ApiError,
  { readonly trailers: Trailers; readonly details: Buffer; readonly idAt: number }
>();
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
