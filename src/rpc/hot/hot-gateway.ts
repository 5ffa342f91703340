import type { IncomingMessage, ServerResponse } from "node:http";
import type { DescMessage, MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import { ApiError } from "../api-error.ts";
import { handOver } from "../handed-over.ts";
import { mediaTypeOf } from "../http-handler.ts";
import { collectBody } from "../read-body.ts";
import { HotCall, type HotDeps, type HotEndpoint, hotEndpointsOf } from "./hot-call.ts";

/** How the other requests are answered, and all errors. */
export interface ReferencePath {
  answer(req: IncomingMessage, res: ServerResponse): void;
  fail(req: IncomingMessage, res: ServerResponse, requestId: string, thrown: unknown): void;
}

/** Answers whether it took the request; if so, it sees to its answer. Throws nothing. */
export type HotHandler = (req: IncomingMessage, res: ServerResponse, reference: ReferencePath) => boolean;

/**
 * Hot methods as JSON over HTTP/1.1, by the whole target of the request: one with a query is for the reference path. An
 * answer from memory is made and sent in the turn in which the request's last byte came.
 */
export function createHotGateway(deps: HotDeps): Map<string, HotHandler> {
  return new Map(hotEndpointsOf(deps.endpoints).map((hot) => [hot.codec.path, handlerOf(hot, deps)]));
}

function handlerOf({ codec, endpoint }: HotEndpoint, { runCall, newRequestId }: HotDeps): HotHandler {
  function serve(req: IncomingMessage, res: ServerResponse, reference: ReferencePath, message: Message): void {
    const requestId = newRequestId();
    try {
      const response = runCall(new HotCall(endpoint, "json", requestId, req.headers, message));
      if (response instanceof Promise) serveLater(req, res, reference, requestId, response);
      else sendAnswer(res, codec.encodeJson(response), requestId);
    } catch (thrown) {
      reference.fail(req, res, requestId, thrown);
    }
  }

  async function serveLater(
    req: IncomingMessage,
    res: ServerResponse,
    reference: ReferencePath,
    requestId: string,
    response: Promise<MessageInitShape<DescMessage>>,
  ): Promise<void> {
    try {
      sendAnswer(res, codec.encodeJson(await response), requestId);
    } catch (thrown) {
      reference.fail(req, res, requestId, thrown);
    }
  }

  return function handle(req, res, reference) {
    if (!isPlain(req)) return false;
    // A client that breaks off in the middle is nobody's error.
    req.on("error", ignore);
    res.on("error", ignore);
    const takeBody = (body: Buffer | ApiError) => {
      const message = body instanceof ApiError ? undefined : codec.decodeJson(body, 0, body.length);
      if (message !== undefined) {
        serve(req, res, reference, message);
        return;
      }
      handOver(req, body);
      reference.answer(req, res);
    };
    collectBody(req, req.headers["content-length"], { takeBody });
    return true;
  };
}

type Message = MessageShape<DescMessage>;

/** Whether nothing about the request but its body can be wrong. */
function isPlain(req: IncomingMessage): boolean {
  const { headers } = req;
  return (
    req.method === "POST" &&
    req.httpVersion === "1.1" &&
    headers.host !== undefined &&
    headers["content-encoding"] === undefined &&
    (headers["content-type"] === "application/json" || mediaTypeOf(req) === "application/json")
  );
}

/** The headers as an array, which Node writes as they are. */
function sendAnswer(res: ServerResponse, body: string, requestId: string): void {
  if (res.headersSent || res.destroyed) return;
  const length = `${Buffer.byteLength(body)}`;
  res.writeHead(200, ["content-type", "application/json", "content-length", length, "x-request-id", requestId]);
  res.end(body);
}

function ignore(): void {}
