import { STATUS_CODES } from "node:http";
import { type ApiError, errorCodes } from "../api-error.ts";
import { errorBody, errorHeaders } from "../respond.ts";

/** Whole answers in JSON over HTTP/1.1, as Node prints them, for a connection that stays open or is told to close. */
export class AnswerPrinter {
  readonly #httpDate: () => string;
  readonly #stay: string;

  constructor(httpDate: () => string, keepAliveMs: number) {
    this.#httpDate = httpDate;
    this.#stay = `Connection: keep-alive\r\nKeep-Alive: timeout=${Math.floor(keepAliveMs / 1000)}\r\n\r\n`;
  }

  ok(body: string, requestId: string, isLast: boolean): string {
    return this.#print("HTTP/1.1 200 OK\r\n", body, requestId, "", isLast);
  }

  error(error: ApiError, requestId: string, isLast: boolean): string {
    const { status } = errorCodes[error.code];
    const more = Object.entries(errorHeaders(error)).map(([name, value]) => `${name}: ${value}\r\n`);
    const line = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n`;
    return this.#print(line, errorBody(error, requestId), requestId, more.join(""), isLast);
  }

  #print(line: string, body: string, requestId: string, more: string, isLast: boolean): string {
    const said = `${line}content-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\nx-request-id: ${requestId}\r\n`;
    return `${said}${more}Date: ${this.#httpDate()}\r\n${isLast ? leave : this.#stay}${body}`;
  }
}

const leave = "Connection: close\r\n\r\n";
