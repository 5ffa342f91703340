import { Code, ConnectError } from "@connectrpc/connect";
import { CoreService } from "../../gen/latchkey/core/v2/core_pb.js";
import type { Ambient } from "../ambient/ambient.ts";
import { createPacedWarning } from "../ambient/paced-lines.ts";
import { type ServeFrontDeps, serveFront } from "../core/serve/serve-front.ts";
import { streamHandler } from "./connect-endpoints.ts";
import type { HttpHandler } from "./http-handler.ts";
import { remoteAddressOf } from "./remote-address.ts";
import { sendUnimplemented } from "./request-listener.ts";
import { createShieldedRouter } from "./shield-streams.ts";

/** Large, because edges put everything of one event loop turn into one message. They are trusted. */
const messageBytesMax = 8 * 1024 * 1024;

/** The internal service. The internal listener makes sure that only edges can call it. */
export function createCoreService(
  deps: ServeFrontDeps & { readonly shutdownSignal: AbortSignal },
): Map<string, HttpHandler> {
  const router = createShieldedRouter(messageBytesMax, deps.shutdownSignal);
  router.rpc(CoreService.method.link, (requests) => {
    // An edge that comes now would only be sent away.
    if (deps.streams.isStopping) throw new ConnectError("the coordinator is stopping", Code.Unavailable);
    return serveFront(requests, deps);
  });
  const served = router.handlers.map((handler) => [handler.requestPath, streamHandler(handler)] as const);
  return new Map([...served, [pathOfOldEdges, refuseOldEdges(deps)]]);
}

/** Where edges of 0.2.0 and older open their streams. */
const pathOfOldEdges = "/latchkey.core.v1.CoreService/Link";

function refuseOldEdges(deps: Pick<Ambient, "clock" | "log">): HttpHandler {
  const warn = createPacedWarning(deps, "an edge of version 0.2.0 was refused: update edges and coordinators together");
  return async function handle(req, res, requestId) {
    warn(() => ({ address: remoteAddressOf(req) }));
    sendUnimplemented(res, requestId);
  };
}
