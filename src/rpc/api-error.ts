import { Code } from "@connectrpc/connect";
import type { Violation } from "./invalid-request.ts";
import { memoized } from "./memoized.ts";

/**
 * Every error a caller can get: its code, the HTTP status on the gateway and the code over gRPC and Connect.
 * `docs/errors.md` explains each and is tested against this table.
 */
export const errorCodes = {
  BAD_REQUEST: { status: 400, rpc: Code.InvalidArgument },
  UNAUTHORIZED: { status: 401, rpc: Code.Unauthenticated },
  FORBIDDEN: { status: 403, rpc: Code.PermissionDenied },
  NOT_FOUND: { status: 404, rpc: Code.NotFound },
  METHOD_NOT_ALLOWED: { status: 405, rpc: Code.Unimplemented },
  CONFLICT: { status: 409, rpc: Code.AlreadyExists },
  PAYLOAD_TOO_LARGE: { status: 413, rpc: Code.ResourceExhausted },
  UNSUPPORTED_MEDIA_TYPE: { status: 415, rpc: Code.InvalidArgument },
  TOO_MANY_REQUESTS: { status: 429, rpc: Code.ResourceExhausted },
  REQUEST_HEADER_FIELDS_TOO_LARGE: { status: 431, rpc: Code.ResourceExhausted },
  INTERNAL_SERVER_ERROR: { status: 500, rpc: Code.Internal },
  SERVICE_UNAVAILABLE: { status: 503, rpc: Code.Unavailable },
} as const satisfies Record<string, { status: number; rpc: Code }>;

export type ErrorCode = keyof typeof errorCodes;

export interface ApiErrorOptions {
  readonly violations?: readonly Violation[];
  readonly retryAfterMs?: number;
  /** For `SERVICE_UNAVAILABLE`: the same request may be sent again, because nothing was done, or nothing would be done twice. */
  readonly isRepeatable?: boolean;
  /** The code over gRPC and Connect, where another one says more. Default: that of the table. */
  readonly rpc?: Code;
  /** Whether the request is refused because it is compressed. */
  readonly isCompressed?: boolean;
  /** For `METHOD_NOT_ALLOWED`: the verbs that the path takes. Default: POST. */
  readonly allow?: string;
  /** For the log; a caller never sees it. */
  readonly cause?: unknown;
}

/** An error as a caller gets it. Its message is safe to show: it holds nothing that was sent and nothing internal. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  readonly code: ErrorCode;
  readonly violations: readonly Violation[];
  readonly retryAfterMs: number | undefined;
  readonly isRepeatable: boolean;
  /** Over gRPC and Connect. */
  readonly rpc: Code;
  readonly isCompressed: boolean;
  readonly allow: string | undefined;

  constructor(code: ErrorCode, message: string, options: ApiErrorOptions = {}) {
    super(message, { cause: options.cause });
    this.code = code;
    this.violations = options.violations ?? [];
    this.retryAfterMs = options.retryAfterMs;
    this.isRepeatable = options.isRepeatable ?? false;
    this.rpc = options.rpc ?? errorCodes[code].rpc;
    this.isCompressed = options.isCompressed ?? false;
    this.allow = options.allow;
  }
}

/** There is no room for a request now, and nothing was done for it. */
export function noRoom(problem: string): ApiError {
  return new ApiError("SERVICE_UNAVAILABLE", `${problem}; try again`, { retryAfterMs: 1000 });
}

/** What is sent compressed is refused: it could be a thousand times as large as it is. Each protocol has words of its own. */
export function compressedRefused(message: string): ApiError {
  return new ApiError("UNSUPPORTED_MEDIA_TYPE", message, { rpc: Code.Unimplemented, isCompressed: true });
}

/** The same error of a request that may be sent again. Made once for each error. */
export const asRepeatable = memoized((error: ApiError): ApiError => {
  if (error.isRepeatable) return error;
  const { code, message, violations, retryAfterMs, cause } = error;
  const options = { violations, cause, isRepeatable: true, ...(retryAfterMs !== undefined && { retryAfterMs }) };
  return new ApiError(code, message, options);
});

let publicUrl = "";

/** Says where callers reach this service. Once, before anything is served; the same for all that the process serves. */
export function setPublicUrl(url: string): void {
  publicUrl = url;
}

/** Where an error is explained: on the page that this service serves. Never taken from a request. */
export function docsOf(code: ErrorCode): string {
  return `${publicUrl}/docs#${code}`;
}
