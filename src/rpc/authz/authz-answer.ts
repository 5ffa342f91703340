import { outcomeStatus, type VerifyKeyResponse } from "../../../gen/latchkey/v1/client.ts";
import { limitHeaders } from "../../domain/limit-headers.ts";
import type { ApiError } from "../api-error.ts";
import { type Answer, errorHeaders } from "../respond.ts";
import { type AnswerHeader, type commonHeaders, statusOfCode } from "./authz-contract.ts";

/** What is used of the answer of `verifyKey`. */
export type AuthzVerification = Pick<VerifyKeyResponse, "code"> & Partial<VerifyKeyResponse>;

/** The answer to a request whose key was verified. */
export function verifiedAnswer(verification: AuthzVerification, requestId: string, nowMs: number): Answer {
  const { code, keyId, ownerId, reason } = verification;
  // A code that is not in the table is a refusal.
  const status = (outcomeStatus as Readonly<Record<string, number>>)[code] ?? 403;
  const about = { code, keyId, ownerId, reason: reason?.message };
  const challenge = status === 401 && { "www-authenticate": 'Bearer error="invalid_token"' };
  return emptyAnswer(status, requestId, about, { ...challenge, ...limitHeaders(verification, nowMs) });
}

/** The answer to a request without a key. */
export function missingKeyAnswer(requestId: string): Answer {
  const about = { code: "MISSING_KEY", reason: "an API key is needed" };
  return emptyAnswer(statusOfCode.MISSING_KEY, requestId, about, { "www-authenticate": "Bearer" });
}

/**
 * The answer if nothing was decided. Only wrong parameters are the operator's mistake. All other errors are 503, because the
 * end user has done nothing wrong: a refused root key must not look like a refused key.
 */
export function undecidedAnswer(error: ApiError, requestId: string): Answer {
  const { code, message } = error;
  if (code === "BAD_REQUEST") return emptyAnswer(statusOfCode.BAD_REQUEST, requestId, { code, reason: message }, {});
  const { "retry-after": retryAfter } = code === "SERVICE_UNAVAILABLE" ? errorHeaders(error) : {};
  const about = { code: "UNAVAILABLE", reason: message };
  const wait = retryAfter !== undefined && { "retry-after": retryAfter };
  return emptyAnswer(statusOfCode.UNAVAILABLE, requestId, about, { ...wait });
}

interface Decision {
  readonly code: string;
  readonly keyId?: string | undefined;
  readonly ownerId?: string | undefined;
  readonly reason?: string | undefined;
}

/** All of `commonHeaders` are always there, so that a proxy that copies them overwrites those which an end user has forged. */
function emptyAnswer(
  status: number,
  requestId: string,
  { code, keyId, ownerId, reason }: Decision,
  more: Readonly<Partial<Record<AnswerHeader, string>>>,
): Answer {
  const common: Record<keyof typeof commonHeaders, string> = {
    "cache-control": "no-store",
    "x-request-id": requestId,
    "x-latchkey-key-id": encode(keyId),
    "x-latchkey-owner-id": encode(ownerId),
    "x-latchkey-code": encode(code),
    "x-latchkey-reason": encode(reason, reasonLengthMax),
  };
  const headers = ["content-length", "0"];
  for (const name in common) headers.push(name, common[name as keyof typeof common]);
  for (const name in more) headers.push(name, more[name as AnswerHeader] as string);
  return { status, headers, body: "" };
}

/** Together with the longest owner id, all headers must fit into the 4 KB that nginx takes. */
const reasonLengthMax = 300;

function encode(text = "", lengthMax = Number.POSITIVE_INFINITY): string {
  if (text.length <= lengthMax && /^[\w.-]*$/.test(text)) return text;
  const cut = text.length > lengthMax ? `${text.slice(0, lengthMax)}…` : text;
  return encodeURIComponent(cut.toWellFormed());
}
