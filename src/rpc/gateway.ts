import type { IncomingMessage } from "node:http";
import type { DescMessage, MessageInitShape } from "@bufbuild/protobuf";
import { type MaybePromise, mapOutcome } from "../domain/maybe-promise.ts";
import { ApiError, compressedRefused } from "./api-error.ts";
import type { Call, RunCall } from "./call.ts";
import { readMessage } from "./decoding/read-message.ts";
import { type HttpHandler, mediaTypeOf, queryOf, type RequestHead, type Responder } from "./http-handler.ts";
import { encodeJson, JsonCall, type JsonMethod, type RoutedMethod } from "./json-call.ts";
import { collectBody, type ReadBody, readBody } from "./read-body.ts";
import { remoteAddressOf } from "./remote-address.ts";
import { type Answer, errorAnswer, jsonAnswer, sendAnswer } from "./respond.ts";

/** What answers a path. */
interface Verbs {
  readonly GET?: JsonMethod;
  readonly POST?: JsonMethod;
}

/**
 * Serves JSON: `POST /v1/keys.createKey` and so on, as annotated in the proto files. A method's generated codec, if it
 * has one, reads and prints the messages that it supports. Methods with a `get` binding also take query parameters.
 */
export function createGateway(methods: readonly RoutedMethod[], runCall: RunCall): Map<string, HttpHandler> {
  return mapVerbs(methods, (verbs) => {
    const post = verbs.POST && bodyHandler(verbs.POST, runCall);
    const get = verbs.GET && queryHandler(verbs.GET, runCall);
    return function handle(req, ...rest) {
      const handler = req.method === "POST" ? post : isGet(req) ? get : undefined;
      if (handler === undefined) throw wrongVerb(verbs);
      return handler(req, ...rest);
    };
  });
}

/** The same for requests without a body: what GET, HEAD and wrong verbs are answered. */
export function createGatewayPages(methods: readonly RoutedMethod[], runCall: RunCall): Map<string, Responder> {
  return mapVerbs(methods, (verbs) => (head, requestId) => {
    if (verbs.GET === undefined || !isGet(head)) throw wrongVerb(verbs);
    return answerQuery(verbs.GET, runCall, head, requestId, false);
  });
}

function mapVerbs<Value>(methods: readonly RoutedMethod[], serve: (verbs: Verbs) => Value): Map<string, Value> {
  const byPath = new Map<string, Verbs>();
  for (const method of methods) byPath.set(method.path, { ...byPath.get(method.path), [method.verb]: method });
  return new Map(Array.from(byPath, ([path, verbs]) => [path, serve(verbs)]));
}

/** HEAD is answered like GET, without the body. */
function isGet({ method }: RequestHead): boolean {
  return method === "GET" || method === "HEAD";
}

function wrongVerb(verbs: Verbs): ApiError {
  const names = (["GET", "POST"] as const).filter((verb) => verbs[verb] !== undefined);
  const allow = names.join(", ").replace("GET", "GET, HEAD");
  return new ApiError("METHOD_NOT_ALLOWED", `this method takes ${names.join(" and ")} only`, { allow });
}

/** An answer from memory is sent without a promise, in the same turn of the event loop as the request's last byte. */
function bodyHandler(method: JsonMethod, runCall: RunCall): HttpHandler {
  return function handle(req, res, requestId, fail) {
    requireJson(req);
    const send = (message: MessageInitShape<DescMessage>) =>
      sendAnswer(res, jsonAnswer(200, encodeJson(method, message), ["x-request-id", requestId]));
    const takeBody = (body: ReadBody) => {
      if (body instanceof ApiError) fail(body, "request");
      else mapOutcome(() => runCall(new JsonCall(method, requestId, req, body, 0, body.length)), send, fail);
    };
    collectBody(req, req.headers["content-length"], { takeBody });
    return undefined;
  };
}

function queryHandler(method: JsonMethod, runCall: RunCall): HttpHandler {
  return async function handle(req, res, requestId) {
    res.setHeader(...uncached);
    const body = await readBody(req);
    sendAnswer(res, await answerQuery(method, runCall, req, requestId, body.length > 0));
  };
}

/** Also on errors. What a root key may see must not come out of a shared cache. */
const uncached = ["cache-control", "no-store"] as const;

function answerQuery(
  method: JsonMethod,
  runCall: RunCall,
  head: RequestHead,
  requestId: string,
  hasBody: boolean,
): MaybePromise<Answer> {
  const { endpoint } = method;
  const encoded = () => {
    if (hasBody) throw new ApiError("BAD_REQUEST", "a GET has no body; send the fields as query parameters");
    return { encoding: "query", bytes: Buffer.from(queryOf(head)) } as const;
  };
  const read = () => readMessage(endpoint.method.input, encoded());
  const remoteAddress = () => remoteAddressOf(head);
  const call: Call = { endpoint, protocol: "json", requestId, headers: head.headers, remoteAddress, read, encoded };
  return mapOutcome(
    () => runCall(call),
    (message) => jsonAnswer(200, encodeJson(method, message), ["x-request-id", requestId, ...uncached]),
    (thrown) => {
      // Another error is none of the call's.
      if (!(thrown instanceof ApiError)) throw thrown;
      const answer = errorAnswer(thrown, requestId);
      return { ...answer, headers: [...answer.headers, ...uncached] };
    },
  );
}

function requireJson(req: IncomingMessage): void {
  if (mediaTypeOf(req) !== "application/json") {
    throw new ApiError("UNSUPPORTED_MEDIA_TYPE", "the header Content-Type must be application/json");
  }
  if (!/^(identity)?$/i.test(req.headers["content-encoding"] ?? "")) {
    throw compressedRefused("compressed bodies are not accepted: leave out Content-Encoding");
  }
}
