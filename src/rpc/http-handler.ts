import type { IncomingMessage, ServerResponse } from "node:http";

/**
 * Answers one HTTP request, over HTTP/1.1 or HTTP/2 alike (through Node's compatibility API). What it throws becomes an
 * error answer in JSON, and so does what it calls `fail` with later.
 *
 * It is called when the head is there, and must not answer before something was awaited: by then Node has read on, and where
 * the rest of the request is malformed, its client gets the refusal and no answer before it.
 */
export type HttpHandler = (
  req: IncomingMessage,
  res: ServerResponse,
  requestId: string,
  fail: (thrown: unknown) => void,
) => Promise<void> | undefined;

/** The media type of the body, in lower case; undefined where there is none, or one in another charset than UTF-8. */
export function mediaTypeOf(req: IncomingMessage): string | undefined {
  // Most say just this.
  if (req.headers["content-type"] === "application/json") return "application/json";
  const [, type] = /^([^\s;]+)\s*(?:;\s*charset\s*=\s*"?utf-8"?\s*)?$/i.exec(req.headers["content-type"] ?? "") ?? [];
  return type?.toLowerCase();
}
