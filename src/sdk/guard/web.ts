// For handlers of Request and Response: route handlers of Next.js, Workers, Deno, Bun.
import { bodyOf, createGuard, missingOf, type RefusalOptions, type VerifiedKey, type Verifier } from "./guard.ts";

export type { Asked, Refusal, RefusalOptions, VerifiedKey, Verifier } from "./guard.ts";

/** Answers a request that has a valid key. What else the caller passes comes behind. */
export type KeyedHandler<Rest extends readonly unknown[]> = (
  request: Request,
  key: VerifiedKey,
  ...rest: Rest
) => Response | Promise<Response>;

/** A handler that lets only requests with a valid key pass. */
export function protect<Rest extends readonly unknown[]>(
  client: Verifier,
  options: RefusalOptions<Request>,
  handler: KeyedHandler<Rest>,
): (request: Request, ...rest: Rest) => Promise<Response> {
  const guard = createGuard(client, options);
  return async (request, ...rest) => {
    const guarded = await guard(request, (name) => request.headers.get(name) ?? undefined);
    const { refusal } = guarded;
    if (!refusal) return withHeaders(await handler(request, guarded.key, ...rest), guarded.headers);
    return Response.json(bodyOf(refusal, request, options), { status: refusal.status, headers: refusal.headers });
  };
}

/** A copy, because the headers of a Response can be read-only, and the Response one that the API uses again. */
function withHeaders(response: Response, headers: Readonly<Record<string, string>>): Response {
  const missing = missingOf(headers, (name) => response.headers.has(name));
  // An upgraded connection (101) cannot be copied, nor can an error (0).
  if (missing.length === 0 || response.status < 200) return response;
  const answer = new Response(response.body, response);
  for (const [name, value] of missing) answer.headers.set(name, value);
  return answer;
}
