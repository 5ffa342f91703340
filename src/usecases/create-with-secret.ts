import { isExpired, looksLikeSeconds } from "../domain/expiry.ts";
import type { CreateKey, CreateRootKey, NewEvent } from "../store/commands.ts";
import type { Management } from "../store/management.ts";
import { StateConflict } from "./conflict.ts";
import { createIdempotency, IdempotencyConflict, type IdempotencyKey } from "./idempotency.ts";
import { type EventDeps, newEvent } from "./new-event.ts";

/** It would have expired before it was made. Safe to show to the caller. */
export class ExpiresInThePast extends Error {
  override readonly name = "ExpiresInThePast";

  constructor(expiresAtMs: number) {
    const hint = looksLikeSeconds(expiresAtMs) ? ", in milliseconds; this looks like seconds" : "";
    super(`must be in the future${hint}`);
  }
}

/** There is no such API, and a key does not create it. Safe to show to the caller. */
export class NoSuchApi extends Error {
  override readonly name = "NoSuchApi";

  constructor() {
    super("there is no such API; create it first with apis.createApi");
  }
}

interface Made<Answer> {
  /** With the only copy of the secret. */
  readonly answer: Answer;
  readonly command: CreateKey | CreateRootKey;
}

/**
 * Makes a key or a root key, and answers only after COMMIT: one that a caller has seen is always valid. A repeated request gets
 * the same secret again. Throws `ExpiresInThePast`, `NoSuchApi`, `StateConflict` or `IdempotencyConflict`.
 */
export async function createWithSecret<Answer>(
  management: Management,
  request: { readonly expiresAtMs: number | undefined },
  key: IdempotencyKey | undefined,
  deps: EventDeps,
  make: (event: NewEvent) => Promise<Made<Answer>>,
): Promise<Answer> {
  const event = newEvent(deps);
  const idempotency = key && createIdempotency<Answer>(key, request);
  if (isExpired(request.expiresAtMs, event.atMs)) {
    // A repeated request gets its first answer, even if its expiry has passed meanwhile.
    const kept = await idempotency?.find(management, event.atMs);
    if (kept === undefined) throw new ExpiresInThePast(request.expiresAtMs as number);
    return stillThere(management, kept);
  }
  const { answer, command } = await make(event);
  const record = idempotency?.record(answer, command.created.id, event.atMs, deps.random);
  const outcome = await management.change(command, record);
  if (outcome.outcome === "missing") throw new NoSuchApi();
  if (outcome.outcome === "conflict") throw new StateConflict(outcome.reason);
  if (outcome.outcome === "done" || idempotency === undefined) return answer;
  return stillThere(management, idempotency.open(outcome.record));
}

/** Throws `IdempotencyConflict` if the key, or root key, was deleted since: its secret opens nothing any more. */
export async function stillThere<Answer>(management: Pick<Management, "read">, answer: Answer): Promise<Answer> {
  const { keyId, rootKeyId } = answer as { readonly keyId?: string; readonly rootKeyId?: string };
  const isThere = await (keyId === undefined
    ? management.read({ kind: "rootKey", id: rootKeyId as string })
    : management.read({ kind: "key", id: keyId }));
  if (isThere !== undefined) return answer;
  const gone =
    keyId === undefined ? `has created ${rootKeyId}, which was revoked` : `was used for ${keyId}, which was deleted`;
  throw new IdempotencyConflict(`this Idempotency-Key ${gone} since`);
}
