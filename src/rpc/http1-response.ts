import { STATUS_CODES } from "node:http";
import { ApiError, type ErrorCode, noRoom } from "./api-error.ts";
import { type Answer, errorAnswer } from "./respond.ts";

/* Whole responses of HTTP/1.1, for connections that Node's server does not answer. */

/** A printed response. A large body stays as it is: a string would be copied for each client that reads slowly. */
export type PrintedAnswer = string | readonly [head: string, body: Buffer];

/** Prints the same answers as Node. The last answer of a connection tells the client that it closes. */
export class AnswerPrinter {
  readonly #httpDate: () => string;
  readonly #stay: string;

  constructor(httpDate: () => string, keepAliveMs: number) {
    this.#httpDate = httpDate;
    this.#stay = `Connection: keep-alive\r\nKeep-Alive: timeout=${Math.floor(keepAliveMs / 1000)}\r\n`;
  }

  /** A call's answer in JSON: as `print`, but faster. */
  ok(body: string, requestId: string, isLast: boolean): string {
    const length = Buffer.byteLength(body);
    const own = `content-type: application/json\r\ncontent-length: ${length}\r\nx-request-id: ${requestId}\r\n`;
    return `HTTP/1.1 200 OK\r\n${own}${this.#ending(isLast)}\r\n${body}`;
  }

  print(answer: Answer, isLast: boolean, isHead = false): PrintedAnswer {
    const head = printHead(answer, this.#ending(isLast));
    if (isHead) return head;
    return typeof answer.body === "string" ? head + answer.body : [head, answer.body];
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
  return printError(noRoom("too many connections are open"), requestId, "connection: close\r\n");
}

function printError(error: ApiError, requestId: string, ending: string): string {
  const answer = errorAnswer(error, requestId);
  return printHead(answer, ending) + answer.body;
}

/** `ending` are the headers after those of the answer. */
function printHead({ status, headers }: Answer, ending: string): string {
  let head = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n`;
  for (let i = 0; i < headers.length; i += 2) head += `${headers[i]}: ${headers[i + 1]}\r\n`;
  return `${head}${ending}\r\n`;
}
