import { STATUS_CODES } from "node:http";
import { ApiError, type ErrorCode, errorCodes } from "./api-error.ts";
import { errorBody, errorHeaders } from "./respond.ts";

/* Whole JSON responses of HTTP/1.1, for connections that Node's server does not answer. */

/** Prints the same answers as Node. The last answer of a connection tells the client that it closes. */
export class AnswerPrinter {
  readonly #httpDate: () => string;
  readonly #stay: string;

  constructor(httpDate: () => string, keepAliveMs: number) {
    this.#httpDate = httpDate;
    this.#stay = `Connection: keep-alive\r\nKeep-Alive: timeout=${Math.floor(keepAliveMs / 1000)}\r\n`;
  }

  ok(body: string, requestId: string, isLast: boolean): string {
    return print("HTTP/1.1 200 OK\r\n", body, requestId, this.#ending(isLast));
  }

  error(error: ApiError, requestId: string, isLast: boolean): string {
    return printError(error, requestId, this.#ending(isLast));
  }

  #ending(isLast: boolean): string {
    return `Date: ${this.#httpDate()}\r\n${isLast ? "Connection: close\r\n" : this.#stay}`;
  }
}

/** Bytes of a request before its body: its path and its headers. */
export const headersBytesMax = 16_384;

/** Why Node has not read a request, by the code of its error. */
const unread: Readonly<Record<string, readonly [code: ErrorCode, message: string]>> = {
  ERR_HTTP_REQUEST_TIMEOUT: ["BAD_REQUEST", "the request did not arrive in time"],
  HPE_HEADER_OVERFLOW: [
    "REQUEST_HEADER_FIELDS_TOO_LARGE",
    `the path and the headers are larger than ${headersBytesMax} bytes`,
  ],
};

/** The answer to bytes that Node cannot parse as a request. Ends the connection. */
export function malformedResponse(
  error: NodeJS.ErrnoException,
  requestId: string,
  onRefused?: (code: ErrorCode, requestId: string) => void,
): string {
  const [code, message] = unread[error.code ?? ""] ?? ["BAD_REQUEST", "this is not a well-formed HTTP request"];
  onRefused?.(code, requestId);
  return printError(new ApiError(code, message), requestId, "connection: close\r\n");
}

/** The answer to a client that connects while there are too many connections. Ends the connection. */
export function overloadedResponse(requestId: string): string {
  const overloaded = new ApiError("SERVICE_UNAVAILABLE", "too many connections are open; try again", {
    retryAfterMs: 1000,
  });
  return printError(overloaded, requestId, "connection: close\r\n");
}

function printError(error: ApiError, requestId: string, ending: string): string {
  const { status } = errorCodes[error.code];
  const more = Object.entries(errorHeaders(error)).map(([name, value]) => `${name}: ${value}\r\n`);
  const line = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n`;
  return print(line, errorBody(error, requestId), requestId, `${more.join("")}${ending}`);
}

/** The only place that prints a response. `ending` are the headers after those that every response has. */
function print(line: string, body: string, requestId: string, ending: string): string {
  const always = `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\nx-request-id: ${requestId}\r\n`;
  return `${line}${always}${ending}\r\n${body}`;
}
