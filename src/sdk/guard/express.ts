// Middleware for Express, and for what calls middleware as Express does.
import {
  bodyOf,
  createGuard,
  headersOfNode,
  missingOf,
  type RefusalOptions,
  type VerifiedKey,
  type Verifier,
} from "./guard.ts";

declare global {
  namespace Express {
    interface Request {
      /** The verified key, behind `protect`. */
      latchkey?: VerifiedKey;
    }
  }
}

/** What is used of a request. */
export interface RequestLike {
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  latchkey?: VerifiedKey;
}

/** What is used of a response. */
export interface ResponseLike {
  status(status: number): ResponseLike;
  set(headers: Record<string, string>): ResponseLike;
  /** Without it every header counts as not set. */
  hasHeader?(name: string): boolean;
  json(body: unknown): unknown;
}

export type { Asked, Refusal, RefusalOptions, VerifiedKey, Verifier } from "./guard.ts";

/** Lets only requests with a valid key pass, which is then `request.latchkey`. */
export function protect<Request extends RequestLike = RequestLike>(
  client: Verifier,
  options: RefusalOptions<Request> = {},
): (request: Request, response: ResponseLike, next: (error?: unknown) => void) => Promise<void> {
  const guard = createGuard(client, options);
  return async (request, response, next) => {
    const guarded = await guard(request, headersOfNode(request.headers));
    const { refusal } = guarded;
    const { headers } = refusal ?? guarded;
    response.set(Object.fromEntries(missingOf(headers, (name) => response.hasHeader?.(name) === true)));
    if (refusal) {
      response.status(refusal.status).json(bodyOf(refusal, request, options));
      return;
    }
    request.latchkey = guarded.key;
    next();
  };
}
