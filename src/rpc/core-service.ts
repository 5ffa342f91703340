import { Code, ConnectError, createConnectRouter } from "@connectrpc/connect";
import { CoreService } from "../../gen/latchkey/core/v1/core_pb.js";
import { type ServeFrontDeps, serveFront } from "../core/serve/serve-front.ts";
import { streamHandler } from "./connect-endpoints.ts";
import type { HttpHandler } from "./http-handler.ts";
import { shieldStreams } from "./shield-streams.ts";

/** Large, because edges put everything of one event loop turn into one message. They are trusted. */
const messageBytesMax = 8 * 1024 * 1024;

/** The internal service. The internal listener makes sure that only edges can call it. */
export function createCoreService(
  deps: ServeFrontDeps & { readonly shutdownSignal: AbortSignal },
): Map<string, HttpHandler> {
  const router = createConnectRouter({
    acceptCompression: [],
    readMaxBytes: messageBytesMax,
    interceptors: [shieldStreams],
    shutdownSignal: deps.shutdownSignal,
  });
  router.rpc(CoreService.method.link, (requests) => {
    // An edge that comes now would only be told to go.
    if (deps.streams.isStopping) throw new ConnectError("the coordinator is stopping", Code.Unavailable);
    return serveFront(requests, deps);
  });
  return new Map(router.handlers.map((handler) => [handler.requestPath, streamHandler(handler)]));
}
