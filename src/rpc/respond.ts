import type { ServerResponse } from "node:http";
import { type ApiError, docsOf, errorCodes } from "./api-error.ts";

/** Answers with JSON. Headers are names and values in turn. Does nothing when the client has gone or has been answered. */
export function sendJson(res: ServerResponse, status: number, body: string | Buffer, headers: string[] = []): void {
  if (res.headersSent || res.destroyed) return;
  const length = `${Buffer.byteLength(body)}`;
  res.writeHead(status, ["content-type", "application/json", "content-length", length, ...headers]);
  // The headers of an answer to HEAD tell of the body that GET would get.
  if (res.req.method === "HEAD") res.end();
  else res.end(body);
}

/** Answers with an error in the gateway's form. */
export function sendError(res: ServerResponse, error: ApiError, requestId: string): void {
  const headers = ["x-request-id", requestId, ...Object.entries(errorHeaders(error)).flat()];
  sendJson(res, errorCodes[error.code].status, errorBody(error, requestId), headers);
}

export function errorBody({ code, message, violations }: ApiError, requestId: string): string {
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
