import { registerHooks } from "node:module";
import type { LinkRequest } from "../../../gen/latchkey/core/v2/core_pb.js";
import { type ServeFrontDeps, serveFront as serveOnce } from "../../../src/core/serve/serve-front.ts";

/* Loaded before the program, this makes a coordinator that executes some messages of its edges twice. */

const everyNth = Number(process.env.REPEAT_EVERY);

registerHooks({
  resolve(specifier, context, nextResolve) {
    const isService = context.parentURL?.endsWith("/src/rpc/core-service.ts");
    const isReplaced = isService && specifier.endsWith("/serve-front.ts");
    return isReplaced ? { url: import.meta.url, shortCircuit: true } : nextResolve(specifier, context);
  },
});

export function serveFront(requests: AsyncIterable<LinkRequest>, deps: ServeFrontDeps) {
  return serveOnce(repeatSome(requests), deps);
}

async function* repeatSome(requests: AsyncIterable<LinkRequest>): AsyncGenerator<LinkRequest> {
  let charges = 0;
  for await (const request of requests) {
    yield request;
    const isCharge = request.charges !== undefined;
    if (isCharge && ++charges % everyNth === 0) yield request;
  }
}
