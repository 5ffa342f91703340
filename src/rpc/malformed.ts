import { ApiError } from "./api-error.ts";
import { errorBody } from "./respond.ts";

/** The answer, as a whole HTTP/1.1 response, to bytes from which Node could not make a request. */
export function malformedResponse(error: Error, requestId: string): string {
  const tooSlow = (error as NodeJS.ErrnoException).code === "ERR_HTTP_REQUEST_TIMEOUT";
  const message = tooSlow ? "the request did not arrive in time" : "this is not a well-formed HTTP request";
  const body = errorBody(new ApiError("BAD_REQUEST", message), requestId);
  const head = [
    "HTTP/1.1 400 Bad Request",
    "content-type: application/json",
    `content-length: ${Buffer.byteLength(body)}`,
    `x-request-id: ${requestId}`,
    "connection: close",
  ];
  return `${head.join("\r\n")}\r\n\r\n${body}`;
}
