import type { IncomingMessage, ServerResponse } from "node:http";
import type { MaybePromise } from "../domain/maybe-promise.ts";
import type { ApiError } from "./api-error.ts";
import type { CallHeaders } from "./call.ts";
import type { OverSocket } from "./remote-address.ts";
import { type Answer, sendAnswer } from "./respond.ts";

/** Answers with an error, in the gateway's form unless `send` has another. */
export type Fail = (thrown: unknown, failed?: Failed, send?: SendError) => void;

/** Writes an error into the response. */
export type SendError = (res: ServerResponse, error: ApiError, requestId: string) => void;

/** What has failed: a call, which has counted its error itself, or a request that did not become one. */
type Failed = "call" | "request";

/**
 * Answers one HTTP request of HTTP/1.1 or HTTP/2 (through Node's compatibility API). An error that it throws is one of the
 * request. Others are passed to `fail`, which takes them for a call's unless told otherwise.
 *
 * It is called when the head has arrived, and must await something before it answers. Node reads on meanwhile: if the
 * rest of the request is malformed, the client must get the refusal, and no answer before it.
 */
export type HttpHandler = (
  req: IncomingMessage,
  res: ServerResponse,
  requestId: string,
  fail: Fail,
) => Promise<void> | undefined;

/** The head of a request, read by Node or by the fast path. */
export interface RequestHead extends OverSocket {
  readonly method?: string | undefined;
  readonly url?: string | undefined;
  readonly headers: CallHeaders;
}

/** Answers a request by its head alone. An error that it throws is one of the request. */
export type Responder = (head: RequestHead, requestId: string) => MaybePromise<Answer>;

/** The handlers that serve these pages through Node. */
export function servedByNode(pages: ReadonlyMap<string, Responder>): Map<string, HttpHandler> {
  const handlerOf =
    (page: Responder): HttpHandler =>
    async (req, res, requestId) => {
      await undefined;
      sendAnswer(res, await page(req, requestId));
    };
  return new Map(Array.from(pages, ([path, page]) => [path, handlerOf(page)]));
}

/** The media type of the body, in lower case. Undefined if there is none, or if its charset is not UTF-8. */
export function mediaTypeOf({ headers }: Pick<IncomingMessage, "headers">): string | undefined {
  const contentType = headers["content-type"] ?? "";
  // Most requests have exactly this.
  if (contentType === "application/json") return contentType;
  const [, type] = /^([^\s;]+)\s*(?:;\s*charset\s*=\s*"?utf-8"?\s*)?$/i.exec(contentType) ?? [];
  return type?.toLowerCase();
}

/** The path of `/path?query`, and of `http://host/path?query`, which clients send to a proxy. */
export function pathOf({ url = "" }: Pick<RequestHead, "url">): string {
  const path = url.startsWith("/") ? url : url.replace(/^https?:\/\/[^/?]*/i, "");
  const query = path.indexOf("?");
  return query === -1 ? path : path.slice(0, query);
}

/** What follows the first `?`. */
export function queryOf({ url = "" }: Pick<RequestHead, "url">): string {
  const query = url.indexOf("?");
  return query === -1 ? "" : url.slice(query + 1);
}
