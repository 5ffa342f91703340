import { isExpired, looksLikeSeconds } from "../domain/expiry.ts";
import type { CreateKey, CreateRootKey, NewEvent, RerollKey } from "../store/commands.ts";
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
  readonly command: CreateKey | CreateRootKey | RerollKey;
}

/** Makes a key or a root key. Throws `ExpiresInThePast` or `NoSuchApi`, and otherwise as `changeSecret`. */
export async function createWithSecret<Answer>(
  management: Management,
  request: { readonly expiresAtMs: number | undefined },
  key: IdempotencyKey | undefined,
  deps: EventDeps,
  make: (event: NewEvent) => Promise<Made<Answer>>,
): Promise<Answer> {
  const { expiresAtMs } = request;
  let isTooLate = false;
  const created = await changeSecret(management, request, key, deps, async (event) => {
    isTooLate = isExpired(expiresAtMs, event.atMs);
    return isTooLate ? undefined : make(event);
  });
  if (created !== undefined) return created;
  throw isTooLate ? new ExpiresInThePast(expiresAtMs as number) : new NoSuchApi();
}

/**
 * Makes a secret, and answers only after COMMIT: one that a caller has seen is always valid. A repeated request gets the same
 * secret again, even if `make` finds that it cannot be made (again) and returns undefined. Undefined: there is nothing that it
 * could be made for. Throws `StateConflict` or `IdempotencyConflict`.
 */
export async function changeSecret<Answer>(
  management: Management,
  request: object,
  key: IdempotencyKey | undefined,
  deps: EventDeps,
  make: (event: NewEvent) => Promise<Made<Answer> | undefined>,
): Promise<Answer | undefined> {
  const event = newEvent(deps);
  const idempotency = key && createIdempotency<Answer>(key, request);
  const made = await make(event);
  if (made === undefined) {
    const kept = await idempotency?.find(management, event.atMs);
    return kept && requireExisting(management, kept);
  }
  const { answer, command } = made;
  const outcome = await management.change(command, idempotency?.record(answer, command, deps.random));
  if (outcome.outcome === "missing") return undefined;
  if (outcome.outcome === "conflict") throw new StateConflict(outcome.reason);
  if (outcome.outcome === "done" || idempotency === undefined) return answer;
  return requireExisting(management, idempotency.open(outcome.record));
}

/** Throws `IdempotencyConflict` if the key, or root key, was deleted since: its secret opens nothing any more. */
async function requireExisting<Answer>(management: Pick<Management, "read">, answer: Answer): Promise<Answer> {
  const { keyId, rootKeyId } = answer as { readonly keyId?: string; readonly rootKeyId?: string };
  const isStored = await (keyId === undefined
    ? management.read({ kind: "rootKey", id: rootKeyId as string })
    : management.read({ kind: "key", id: keyId }));
  if (isStored !== undefined) return answer;
  const gone =
    keyId === undefined ? `has created ${rootKeyId}, which was revoked` : `was used for ${keyId}, which was deleted`;
  throw new IdempotencyConflict(`this Idempotency-Key ${gone} since`);
}
