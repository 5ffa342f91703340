import type { IncomingMessage } from "node:http";
import type { DescMessage, MessageInitShape } from "@bufbuild/protobuf";
import type { Route } from "../../gen/latchkey/v1/services.ts";
import type { HotMethod } from "../codec/codec-runtime.ts";
import { ApiError } from "./api-error.ts";
import type { Endpoint, RunCall } from "./call.ts";
import { type HttpHandler, mediaTypeOf } from "./http-handler.ts";
import { encodeJson, JsonCall, type JsonMethod } from "./json-call.ts";
import { collectBody, type ReadBody } from "./read-body.ts";
import { sendJson } from "./respond.ts";

/**
 * Serves JSON: `POST /v1/keys.createKey` and so on, as annotated in the proto files. A method's generated codec, if it
 * has one, reads and prints the messages that it supports.
 */
export function createGateway(options: {
  readonly routes: readonly Route[];
  readonly endpoints: readonly Endpoint[];
  readonly runCall: RunCall;
  readonly codecs: readonly HotMethod[];
}): Map<string, HttpHandler> {
  const { routes, endpoints, runCall, codecs } = options;
  return new Map(
    routes.map(({ path, method }) => {
      const endpoint = endpoints.find((candidate) => candidate.method === method);
      if (endpoint === undefined) throw new Error(`nothing answers ${path}`);
      const codec = codecs.find((candidate) => candidate.method === method);
      return [path, handlerOf({ endpoint, codec }, runCall)];
    }),
  );
}

/** An answer from memory is sent without a promise, in the same turn of the event loop as the request's last byte. */
function handlerOf(method: JsonMethod, runCall: RunCall): HttpHandler {
  return function handle(req, res, requestId, fail) {
    if (req.method !== "POST") throw new ApiError("METHOD_NOT_ALLOWED", "this method takes POST only");
    requireJson(req);
    const send = (response: MessageInitShape<DescMessage>) =>
      sendJson(res, 200, encodeJson(method, response), ["x-request-id", requestId]);
    const takeBody = (body: ReadBody) => {
      try {
        if (body instanceof ApiError) throw body;
        const response = runCall(new JsonCall(method, requestId, req.headers, body, 0, body.length));
        if (response instanceof Promise) response.then(send).catch(fail);
        else send(response);
      } catch (thrown) {
        fail(thrown);
      }
    };
    collectBody(req, req.headers["content-length"], { takeBody });
    return undefined;
  };
}

function requireJson(req: IncomingMessage): void {
  if (mediaTypeOf(req) !== "application/json") {
    throw new ApiError("UNSUPPORTED_MEDIA_TYPE", "the header Content-Type must be application/json");
  }
  if (!/^(identity)?$/i.test(req.headers["content-encoding"] ?? "")) {
    throw new ApiError("UNSUPPORTED_MEDIA_TYPE", "compressed bodies are not accepted: leave out Content-Encoding");
  }
}
