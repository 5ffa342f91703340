import type { IncomingMessage, ServerResponse } from "node:http";
import { create, type DescMessage, type MessageInitShape, toJsonString } from "@bufbuild/protobuf";
import { routes } from "../../gen/latchkey/v1/keys_gateway.ts";
import { ApiError } from "./api-error.ts";
import type { Endpoint, RunCall } from "./call.ts";
import { decodeJson } from "./decoding/decode-json.ts";
import { type HttpHandler, headerOf, mediaTypeOf } from "./http-handler.ts";
import { readBody } from "./read-body.ts";
import { sendJson } from "./respond.ts";
import { validated } from "./validate.ts";

/** The JSON dialect: `POST /v1/keys.createKey` and the like, as the proto's annotations say. */
export function createGateway(endpoints: readonly Endpoint[], runCall: RunCall): Map<string, HttpHandler> {
  return new Map(
    routes.map(({ path, method }) => {
      const endpoint = endpoints.find((candidate) => candidate.method === method);
      if (endpoint === undefined) throw new Error(`nothing answers ${path}`);
      return [path, handlerOf(endpoint, runCall)];
    }),
  );
}

function handlerOf(endpoint: Endpoint, runCall: RunCall): HttpHandler {
  const { input, output } = endpoint.method;
  return async function handle(req: IncomingMessage, res: ServerResponse, requestId: string) {
    if (req.method !== "POST") throw new ApiError("METHOD_NOT_ALLOWED", "this method takes POST only");
    requireJson(req);
    const body = await readBody(req);
    const response = await runCall({
      endpoint,
      protocol: "json",
      requestId,
      header: headerOf(req),
      read: () => validated(input, decodeJson(input, body)),
    });
    sendJson(res, 200, encode(output, response), { "x-request-id": requestId });
  };
}

/** `valid: false` and `remaining: 0` are said, not left out. */
function encode(desc: DescMessage, init: MessageInitShape<DescMessage>): string {
  return toJsonString(desc, create(desc, init), { alwaysEmitImplicit: true });
}

function requireJson(req: IncomingMessage): void {
  if (mediaTypeOf(req) !== "application/json") {
    throw new ApiError("UNSUPPORTED_MEDIA_TYPE", "the header Content-Type must be application/json");
  }
  if (!/^(identity)?$/i.test(req.headers["content-encoding"] ?? "")) {
    throw new ApiError("UNSUPPORTED_MEDIA_TYPE", "compressed bodies are not accepted: leave out Content-Encoding");
  }
}
