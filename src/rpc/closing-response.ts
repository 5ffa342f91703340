import { STATUS_CODES } from "node:http";
import { ApiError, errorCodes } from "./api-error.ts";
import { errorBody, errorHeaders } from "./respond.ts";

/* Whole HTTP/1.1 responses, for connections that no server of Node's answers on. They end the connection. */

/** To bytes from which Node could not make a request. */
export function malformedResponse(error: Error, requestId: string): string {
  const tooSlow = (error as NodeJS.ErrnoException).code === "ERR_HTTP_REQUEST_TIMEOUT";
  const message = tooSlow ? "the request did not arrive in time" : "this is not a well-formed HTTP request";
  return closingResponse(new ApiError("BAD_REQUEST", message), requestId);
}

/** To whoever connects when too many have. */
export function crowdedResponse(requestId: string): string {
  const crowded = new ApiError("SERVICE_UNAVAILABLE", "too many connections are open; try again", {
    retryAfterMs: 1000,
  });
  return closingResponse(crowded, requestId);
}

function closingResponse(error: ApiError, requestId: string): string {
  const { status } = errorCodes[error.code];
  const body = errorBody(error, requestId);
  const headers = {
    "content-type": "application/json",
    "content-length": Buffer.byteLength(body),
    "x-request-id": requestId,
    ...errorHeaders(error),
    connection: "close",
  };
  const head = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${head.join("")}\r\n${body}`;
}
