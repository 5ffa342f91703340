import { createConnectRouter } from "@connectrpc/connect";
import { RatelimitService } from "../../gen/latchkey/ratelimit/v1/ratelimit_pb.js";
import type { Coordinator } from "../ratelimit/coordinator/coordinator.ts";
import { serveReplica } from "../ratelimit/coordinator/serve-replica.ts";
import type { WindowHub } from "../ratelimit/local/window-hub.ts";
import { streamHandler } from "./connect-endpoints.ts";
import type { HttpHandler } from "./http-handler.ts";
import { shieldStreams } from "./shield-streams.ts";

/** Large, because replicas put everything of one event loop turn into one message. They are trusted. */
const messageBytesMax = 8 * 1024 * 1024;

/** The internal rate-limit service. The internal listener makes sure that only replicas can call it. */
export function createRatelimitService(deps: {
  readonly coordinator: Coordinator;
  readonly hub: WindowHub;
  readonly shutdownSignal: AbortSignal;
}): Map<string, HttpHandler> {
  const router = createConnectRouter({
    acceptCompression: [],
    readMaxBytes: messageBytesMax,
    interceptors: [shieldStreams],
    shutdownSignal: deps.shutdownSignal,
  });
  router.rpc(RatelimitService.method.exchange, (requests) => serveReplica(requests, deps));
  return new Map(router.handlers.map((handler) => [handler.requestPath, streamHandler(handler)]));
}
