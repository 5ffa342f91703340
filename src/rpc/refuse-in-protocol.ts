import type { IncomingMessage } from "node:http";
import { Code } from "@connectrpc/connect";
import { codeToHttpStatus, errorToJsonBytes } from "@connectrpc/connect/protocol-connect";
import { ApiError } from "./api-error.ts";
import { errorTrailers, rpcErrorHeaders, toConnectError } from "./grpc-errors.ts";
import { type Fail, mediaTypeOf, queryOf, type SendError } from "./http-handler.ts";
import { sendJson } from "./respond.ts";

/**
 * Refuses what we do not serve of Connect and gRPC-Web, as clients of these protocols understand it. Returns whether it
 * did. Anything else that is wrong with a request is not known to be of one of these protocols.
 */
export function refuseInProtocol(req: IncomingMessage, fail: Fail): boolean {
  const mediaType = mediaTypeOf(req) ?? "";
  if (req.method === "GET" && /(^|&)encoding=/.test(queryOf(req))) {
    const message = "GET requests of Connect are not served; send a POST";
    fail(new ApiError("METHOD_NOT_ALLOWED", message), "request", sendConnectError);
    return true;
  }
  if (req.method === "POST" && /^application\/grpc-web-text(\+proto)?$/.test(mediaType)) {
    const message = "application/grpc-web-text is not served; send application/grpc-web";
    const error = new ApiError("UNSUPPORTED_MEDIA_TYPE", message, { rpc: Code.Unimplemented });
    fail(error, "request", sendGrpcWebError(mediaType));
    return true;
  }
  return false;
}

const sendConnectError: SendError = (res, error, requestId) => {
  const body = Buffer.from(errorToJsonBytes(toConnectError(error, requestId), undefined));
  const headers = Object.entries(rpcErrorHeaders(error, "connect")).flat();
  sendJson(res, codeToHttpStatus(error.rpc), body, ["x-request-id", requestId, ...headers]);
};

/** As headers without a body. */
const sendGrpcWebError =
  (mediaType: string): SendError =>
  (res, error, requestId) => {
    const headers = { "content-type": mediaType, "content-length": 0, "x-request-id": requestId };
    if (!res.destroyed) res.writeHead(200, { ...headers, ...errorTrailers(error, requestId) }).end();
  };
