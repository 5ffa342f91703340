import { Code, ConnectError, createConnectRouter } from "@connectrpc/connect";
import { RatelimitService } from "../../gen/latchkey/ratelimit/v1/ratelimit_pb.js";
import { type ServeReplicaDeps, serveReplica } from "../ratelimit/coordinator/serve-replica.ts";
import { streamHandler } from "./connect-endpoints.ts";
import type { HttpHandler } from "./http-handler.ts";
import { shieldStreams } from "./shield-streams.ts";

/** Large, because replicas put everything of one event loop turn into one message. They are trusted. */
const messageBytesMax = 8 * 1024 * 1024;

/** The internal rate-limit service. The internal listener makes sure that only replicas can call it. */
export function createRatelimitService(
  deps: ServeReplicaDeps & { readonly shutdownSignal: AbortSignal },
): Map<string, HttpHandler> {
  const router = createConnectRouter({
    acceptCompression: [],
    readMaxBytes: messageBytesMax,
    interceptors: [shieldStreams],
    shutdownSignal: deps.shutdownSignal,
  });
  router.rpc(RatelimitService.method.exchange, (requests) => {
    // A replica that comes now would only be told to go.
    if (deps.streams.isStopping) throw new ConnectError("the coordinator is stopping", Code.Unavailable);
    return serveReplica(requests, deps);
  });
  return new Map(router.handlers.map((handler) => [handler.requestPath, streamHandler(handler)]));
}
