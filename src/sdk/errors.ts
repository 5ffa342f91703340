import type { ErrorCode } from "../../gen/latchkey/v1/client.ts";

/** A code of the service, or the reason why no answer of the service arrived. */
export type LatchkeyErrorCode = "NETWORK_ERROR" | "TIMEOUT" | "BAD_RESPONSE" | ErrorCode;

/** One thing that is wrong with one field of a request. */
export interface FieldViolation {
  /** Path of the field, such as `refill.amount`. Empty for the request as a whole. */
  readonly path: string;
  readonly message: string;
}

interface LatchkeyErrorDetails {
  readonly status?: number | undefined;
  readonly requestId?: string | undefined;
  readonly docs?: string | undefined;
  readonly retryAfterMs?: number | undefined;
  readonly violations?: readonly FieldViolation[] | undefined;
  readonly cause?: unknown;
}

/** The same for every copy of this package that a program may have loaded, where `instanceof` distinguishes them. */
const brand = Symbol.for("@latchkey/client.error");

/** Statuses after which the same call may succeed later. */
const PASSING = [429, 502, 503, 504];

/** Why a call failed. Safe to log: it never contains a key, a root key, or the body of a request or answer. */
export class LatchkeyError extends Error {
  override readonly name = "LatchkeyError";
  readonly code: LatchkeyErrorCode;
  /** HTTP status. Absent when no answer came. */
  readonly status: number | undefined;
  /** Identifier of the request in the service's log. */
  readonly requestId: string | undefined;
  /** Where the error is explained. */
  readonly docs: string | undefined;
  /** How long the service asks to wait before trying again. */
  readonly retryAfterMs: number | undefined;
  /** The fields that are wrong, and why. Empty unless `code` is `BAD_REQUEST`. */
  readonly violations: readonly FieldViolation[];
  /** Whether the same call may succeed later. */
  readonly retryable: boolean;

  constructor(code: LatchkeyErrorCode, message: string, details: LatchkeyErrorDetails = {}) {
    super(message, "cause" in details ? { cause: details.cause } : undefined);
    this.code = code;
    this.status = details.status;
    this.requestId = details.requestId;
    this.docs = details.docs;
    this.retryAfterMs = details.retryAfterMs;
    this.violations = details.violations ?? [];
    this.retryable = code === "NETWORK_ERROR" || code === "TIMEOUT" || PASSING.includes(details.status ?? 0);
    Object.defineProperty(this, brand, { value: true });
  }
}

/** Whether an error is one of this package, also of another copy of it. */
export function isLatchkeyError(error: unknown): error is LatchkeyError {
  return typeof error === "object" && error !== null && brand in error;
}

/** Turns an unsuccessful answer into an error. */
export function errorOfAnswer(status: number, headers: Headers, body: unknown): LatchkeyError {
  const { error } = Object(body) as { error?: unknown };
  const { code, message, docs, requestId, violations } = Object(error) as Record<string, unknown>;
  const details = {
    status,
    requestId: asString(requestId) ?? headers.get("x-request-id") ?? undefined,
    docs: asString(docs),
    retryAfterMs: retryAfterMs(headers),
    violations: Array.isArray(violations) ? violations : undefined,
  };
  if (typeof code === "string" && typeof message === "string") return new LatchkeyError(code, message, details);
  // Not written by the service, but for example by a proxy. Its text is dropped: it may repeat what was sent.
  return new LatchkeyError("BAD_RESPONSE", `answer with status ${status} is not one of Latchkey`, details);
}

function asString(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

// Only the form in seconds is read; the service never sends the form with a date.
function retryAfterMs(headers: Headers): number | undefined {
  const seconds = headers.get("retry-after") ?? "";
  return /^\d{1,9}$/.test(seconds) ? Number(seconds) * 1000 : undefined;
}
