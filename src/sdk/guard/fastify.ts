// A hook for Fastify.
import type { FastifyReply, FastifyRequest } from "fastify";
import {
  bodyOf,
  createGuard,
  headersOfNode,
  missingOf,
  type RefusalOptions,
  type VerifiedKey,
  type Verifier,
} from "./guard.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** The verified key, behind `protect`. */
    latchkey?: VerifiedKey;
  }
}

export type { Asked, Refusal, RefusalOptions, VerifiedKey, Verifier } from "./guard.ts";

/**
 * Lets only requests with a valid key pass, which is then `request.latchkey`. A hook of a route (`onRequest`, or
 * `preHandler` where it needs the body) or of a whole server (`addHook`).
 */
export function protect(
  client: Verifier,
  options: RefusalOptions<FastifyRequest> = {},
): (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply | undefined> {
  const guard = createGuard(client, options);
  return async (request, reply) => {
    const guarded = await guard(request, headersOfNode(request.headers));
    const { refusal } = guarded;
    const { headers } = refusal ?? guarded;
    reply.headers(Object.fromEntries(missingOf(headers, (name) => reply.hasHeader(name))));
    if (refusal) return reply.code(refusal.status).send(bodyOf(refusal, request, options));
    request.latchkey = guarded.key;
    return undefined;
  };
}
