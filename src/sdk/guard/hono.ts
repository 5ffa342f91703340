// Middleware for Hono.
import type { Context, MiddlewareHandler } from "hono";
import { bodyOf, createGuard, missingOf, type RefusalOptions, type VerifiedKey, type Verifier } from "./guard.ts";

export type { Asked, Refusal, RefusalOptions, VerifiedKey, Verifier } from "./guard.ts";

/** What `protect` adds to a context. */
export interface Variables {
  latchkey: VerifiedKey;
}

/** Lets only requests with a valid key pass, which is then `c.get("latchkey")`. */
export function protect(
  client: Verifier,
  options: RefusalOptions<Context> = {},
): MiddlewareHandler<{ Variables: Variables }> {
  const guard = createGuard(client, options);
  return async (context, next) => {
    const guarded = await guard(context, (name) => context.req.header(name));
    const { refusal } = guarded;
    if (refusal) {
      return context.body(JSON.stringify(bodyOf(refusal, context, options)), refusal.status, {
        ...refusal.headers,
        "content-type": "application/json",
      });
    }
    context.set("latchkey", guarded.key);
    await next();
    // An upgraded connection (101) cannot be copied, nor can an error (0).
    if (context.res.status < 200) return undefined;
    // Now, because the route may answer with a Response of its own.
    for (const [name, value] of missingOf(guarded.headers, (name) => context.res.headers.has(name)))
      context.header(name, value);
    return undefined;
  };
}
