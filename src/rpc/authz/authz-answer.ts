import { outcomeStatus, type VerifyKeyResponse } from "../../../gen/latchkey/v1/client.ts";
import { limitHeaders } from "../../domain/limit-headers.ts";
import type { ApiError } from "../api-error.ts";
import { errorHeaders } from "../respond.ts";
import { type AnswerHeader, type LatchkeyHeader, statusOfCode } from "./authz-contract.ts";

/** What is used of the answer of `verifyKey`. */
export type Verification = Pick<VerifyKeyResponse, "code"> & Partial<VerifyKeyResponse>;

/** An answer without a body. */
export interface AuthzAnswer {
  readonly status: number;
  readonly headers: Readonly<Partial<Record<AnswerHeader, string>>>;
}

/** The answer to a request whose key was verified. */
export function answerOf(verification: Verification, nowMs: number): AuthzAnswer {
  const { code, keyId, ownerId, reason } = verification;
  // A code that is not in the table is a refusal.
  const status = (outcomeStatus as Readonly<Record<string, number>>)[code] ?? 403;
  const headers = {
    ...latchkeyHeaders({ code, keyId, ownerId, reason: reason?.message }),
    ...(status === 401 && { "www-authenticate": 'Bearer error="invalid_token"' }),
    ...limitHeaders(verification, nowMs),
  };
  return { status, headers };
}

/** The answer to a request without a key. */
export function missingKeyAnswer(): AuthzAnswer {
  const headers = latchkeyHeaders({ code: "MISSING_KEY", reason: "an API key is needed" });
  return { status: statusOfCode.MISSING_KEY, headers: { ...headers, "www-authenticate": "Bearer" } };
}

/**
 * The answer if nothing was decided. Only wrong parameters are the operator's mistake. All other errors are 503, because the
 * end user has done nothing wrong: a refused root key must not look like a refused key.
 */
export function undecidedAnswer(error: ApiError): AuthzAnswer {
  const { code, message } = error;
  if (code === "BAD_REQUEST") {
    return { status: statusOfCode.BAD_REQUEST, headers: latchkeyHeaders({ code, reason: message }) };
  }
  const headers = latchkeyHeaders({ code: "UNAVAILABLE", reason: message });
  const isTransient = code === "SERVICE_UNAVAILABLE";
  const { "retry-after": retryAfter } = isTransient ? errorHeaders(error) : {};
  return {
    status: statusOfCode.UNAVAILABLE,
    headers: { ...headers, ...(retryAfter !== undefined && { "retry-after": retryAfter }) },
  };
}

interface Told {
  readonly code: string;
  readonly keyId?: string | undefined;
  readonly ownerId?: string | undefined;
  readonly reason?: string | undefined;
}

/** All of them are always there, so that a proxy that copies them overwrites those which an end user has forged. */
function latchkeyHeaders({ code, keyId, ownerId, reason }: Told): Record<LatchkeyHeader, string> {
  return {
    "x-latchkey-key-id": encode(keyId),
    "x-latchkey-owner-id": encode(ownerId),
    "x-latchkey-code": encode(code),
    "x-latchkey-reason": encode(reason, reasonLengthMax),
  };
}

/** Together with the longest owner id, all headers must fit into the 4 KB that nginx takes. */
const reasonLengthMax = 300;

function encode(text = "", lengthMax = Number.POSITIVE_INFINITY): string {
  const shown = text.length > lengthMax ? `${text.slice(0, lengthMax)}…` : text;
  return encodeURIComponent(shown.toWellFormed());
}
