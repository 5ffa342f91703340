import type { IncomingMessage, ServerResponse } from "node:http";
import { andThen, type MaybePromise } from "../domain/maybe-promise.ts";
import { ApiError, compressedRefused } from "./api-error.ts";
import type { RunCall } from "./call.ts";
import { readMessage } from "./decoding/read-message.ts";
import { type Fail, type HttpHandler, mediaTypeOf, queryOf } from "./http-handler.ts";
import { encodeJson, JsonCall, type JsonMethod, type RoutedMethod } from "./json-call.ts";
import { collectBody, type ReadBody } from "./read-body.ts";
import { remoteAddressOf } from "./remote-address.ts";
import { sendJson } from "./respond.ts";

/**
 * Serves JSON: `POST /v1/keys.createKey` and so on, as annotated in the proto files. A method's generated codec, if it
 * has one, reads and prints the messages that it supports. Methods with a `get` binding also take query parameters.
 */
export function createGateway(methods: readonly RoutedMethod[], runCall: RunCall): Map<string, HttpHandler> {
  const byPath = new Map<string, Verbs>();
  for (const method of methods) {
    const { verb, path } = method;
    const served = verb === "GET" ? queryHandler(method, runCall) : bodyHandler(method, runCall);
    byPath.set(path, { ...byPath.get(path), [verb]: served });
  }
  return new Map(Array.from(byPath, ([path, verbs]) => [path, verbHandler(verbs)]));
}

/** What answers a path. */
interface Verbs {
  readonly GET?: HttpHandler;
  readonly POST?: HttpHandler;
}

/** HEAD is answered like GET, without the body. */
function verbHandler({ GET, POST }: Verbs): HttpHandler {
  const names = [...(GET ? ["GET"] : []), ...(POST ? ["POST"] : [])];
  const allow = names.join(", ").replace("GET", "GET, HEAD");
  const refusal = `this method takes ${names.join(" and ")} only`;
  return function handle(req, res, requestId, fail) {
    const { method } = req;
    const handler = method === "POST" ? POST : method === "GET" || method === "HEAD" ? GET : undefined;
    if (handler === undefined) throw new ApiError("METHOD_NOT_ALLOWED", refusal, { allow });
    return handler(req, res, requestId, fail);
  };
}

function bodyHandler(method: JsonMethod, runCall: RunCall): HttpHandler {
  return function handle(req, res, requestId, fail) {
    requireJson(req);
    answerAfterBody(req, res, requestId, fail, (body) => {
      const response = runCall(new JsonCall(method, requestId, req, body, 0, body.length));
      return andThen(response, (message) => encodeJson(method, message));
    });
    return undefined;
  };
}

function queryHandler(method: JsonMethod, runCall: RunCall): HttpHandler {
  const { endpoint } = method;
  const { input } = endpoint.method;
  return function handle(req, res, requestId, fail) {
    // Also on errors. What a root key may see must not come out of a shared cache.
    res.setHeader("cache-control", "no-store");
    const { headers } = req;
    const query = queryOf(req);
    answerAfterBody(req, res, requestId, fail, (body) => {
      const encoded = () => {
        if (body.length > 0) throw getWithBody();
        return { encoding: "query", bytes: Buffer.from(query) } as const;
      };
      const read = () => readMessage(input, encoded());
      const remoteAddress = () => remoteAddressOf(req);
      const response = runCall({ endpoint, protocol: "json", requestId, headers, remoteAddress, read, encoded });
      return andThen(response, (message) => encodeJson(method, message));
    });
    return undefined;
  };
}

/** An answer from memory is sent without a promise, in the same turn of the event loop as the request's last byte. */
function answerAfterBody(
  req: IncomingMessage,
  res: ServerResponse,
  requestId: string,
  fail: Fail,
  answer: (body: Buffer) => MaybePromise<string>,
): void {
  const send = (json: string) => sendJson(res, 200, json, ["x-request-id", requestId]);
  const takeBody = (body: ReadBody) => {
    if (body instanceof ApiError) {
      fail(body, "request");
      return;
    }
    try {
      const answered = answer(body);
      if (answered instanceof Promise) answered.then(send).catch((thrown: unknown) => fail(thrown));
      else send(answered);
    } catch (thrown) {
      fail(thrown);
    }
  };
  collectBody(req, req.headers["content-length"], { takeBody });
}

function getWithBody(): ApiError {
  return new ApiError("BAD_REQUEST", "a GET has no body; send the fields as query parameters");
}

function requireJson(req: IncomingMessage): void {
  if (mediaTypeOf(req) !== "application/json") {
    throw new ApiError("UNSUPPORTED_MEDIA_TYPE", "the header Content-Type must be application/json");
  }
  if (!/^(identity)?$/i.test(req.headers["content-encoding"] ?? "")) {
    throw compressedRefused("compressed bodies are not accepted: leave out Content-Encoding");
  }
}
