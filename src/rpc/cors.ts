import type { IncomingMessage, ServerResponse } from "node:http";
import type { HttpHandler } from "./http-handler.ts";

/** What pages may send. Not Authorization: a root key has no place in a browser. */
const requestHeaders = [
  "Content-Type",
  "Connect-Protocol-Version",
  "Connect-Timeout-Ms",
  "Grpc-Timeout",
  "Traceparent",
  "Tracestate",
  "X-Grpc-Web",
  "X-User-Agent",
].join(", ");
/** What pages may read, beside the few headers that they always may. */
const responseHeaders = "X-Request-Id, Retry-After, Grpc-Status, Grpc-Message";
/** Browsers remember it for two hours at most. */
const rememberSeconds = 7200;

/** Lets pages of these origins call this handler's method, in browsers: https://fetch.spec.whatwg.org/#http-cors-protocol */
export function allowOrigins(handler: HttpHandler, origins: ReadonlySet<string>): HttpHandler {
  return function handle(req, res, requestId, fail) {
    const { origin } = req.headers;
    res.setHeader("vary", "Origin");
    if (origin === undefined || !origins.has(origin)) return handler(req, res, requestId, fail);
    res.setHeader("access-control-allow-origin", origin);
    if (isPreflight(req)) return answerPreflight(res);
    res.setHeader("access-control-expose-headers", responseHeaders);
    return handler(req, res, requestId, fail);
  };
}

/** The question that a browser asks before the request. */
function isPreflight({ method, headers }: IncomingMessage): boolean {
  return method === "OPTIONS" && headers["access-control-request-method"] !== undefined;
}

async function answerPreflight(res: ServerResponse): Promise<void> {
  // An immediate answer would be too early: see `HttpHandler`.
  await undefined;
  res.setHeader("access-control-allow-methods", "POST");
  res.setHeader("access-control-allow-headers", requestHeaders);
  res.setHeader("access-control-max-age", rememberSeconds);
  res.writeHead(204).end();
}
