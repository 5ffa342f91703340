import type { ServerResponse } from "node:http";
import { type ApiError, docsOf, errorCodes } from "./api-error.ts";

/** A whole answer, whichever server sends it. */
export interface Answer {
  readonly status: number;
  /** Names and values in turn. */
  readonly headers: readonly string[];
  readonly body: string | Buffer;
}

/** An answer in JSON. Headers are names and values in turn. */
export function jsonAnswer(status: number, body: string | Buffer, headers: readonly string[] = []): Answer {
  const length = `${Buffer.byteLength(body)}`;
  return { status, headers: ["content-type", "application/json", "content-length", length, ...headers], body };
}

/** An error in the gateway's form. */
export function errorAnswer(error: ApiError, requestId: string): Answer {
  const headers = ["x-request-id", requestId, ...Object.entries(errorHeaders(error)).flat()];
  return jsonAnswer(errorCodes[error.code].status, errorBody(error, requestId), headers);
}

/** Writes an answer into a response of Node's. Does nothing when the client has gone or has been answered. */
export function sendAnswer(res: ServerResponse, { status, headers, body }: Answer): void {
  if (res.headersSent || res.destroyed) return;
  res.writeHead(status, headers as string[]);
  // The headers of an answer to HEAD tell of the body that GET would get.
  if (res.req.method === "HEAD") res.end();
  else res.end(body);
}

/** Answers with an error in the gateway's form. */
export function sendError(res: ServerResponse, error: ApiError, requestId: string): void {
  sendAnswer(res, errorAnswer(error, requestId));
}

function errorBody({ code, message, violations }: ApiError, requestId: string): string {
  const fields = violations.length > 0 ? { violations } : {};
  return JSON.stringify({ error: { code, message, docs: docsOf(code), requestId, ...fields } });
}

/** Headers that tell a client what to do next. */
export function errorHeaders(error: ApiError): Record<string, string> {
  const { code, retryAfterMs, allow = "POST" } = error;
  if (error.isCompressed) return { "accept-encoding": "identity" };
  if (code === "UNAUTHORIZED") return { "www-authenticate": "Bearer" };
  if (code === "METHOD_NOT_ALLOWED") return { allow };
  if (retryAfterMs !== undefined) return { "retry-after": String(Math.ceil(retryAfterMs / 1000)) };
  return {};
}
