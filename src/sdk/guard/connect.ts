// An interceptor for servers of Connect.
import {
  Code,
  ConnectError,
  type ContextKey,
  createContextKey,
  type Interceptor,
  type StreamRequest,
  type UnaryRequest,
} from "@connectrpc/connect";
import { createGuard, type GuardOptions, missingOf, type Refusal, type VerifiedKey, type Verifier } from "./guard.ts";

export type { Asked, GuardOptions, Refusal, VerifiedKey, Verifier } from "./guard.ts";

/** The verified key of a call: `context.values.get(latchkey)`. */
export const latchkey: ContextKey<VerifiedKey | undefined> = createContextKey<VerifiedKey | undefined>(undefined, {
  description: "the verified API key",
});

const codes: Readonly<Record<Refusal["status"], Code>> = {
  401: Code.Unauthenticated,
  403: Code.PermissionDenied,
  429: Code.ResourceExhausted,
  503: Code.Unavailable,
};

/** Lets only calls with a valid key pass. What a method asks for: `perRequest: ({ method }) => …`. */
export function protect(client: Verifier, options: GuardOptions<UnaryRequest | StreamRequest> = {}): Interceptor {
  const guard = createGuard(client, options);
  return (next) => async (request) => {
    const guarded = await guard(request, (name) => request.header.get(name) ?? undefined);
    const { refusal } = guarded;
    if (refusal) throw new ConnectError(refusal.message, codes[refusal.status], refusal.headers);
    request.contextValues.set(latchkey, guarded.key);
    const answer = await next(request).catch((error: unknown) => {
      if (error instanceof ConnectError) addMissing(guarded.headers, error.metadata);
      throw error;
    });
    addMissing(guarded.headers, answer.header);
    return answer;
  };
}

function addMissing(headers: Readonly<Record<string, string>>, answered: Headers): void {
  for (const [name, value] of missingOf(headers, (name) => answered.has(name))) answered.set(name, value);
}
