import { toDigest } from "../ambient/crypto.ts";
import { isExpired } from "../domain/expiry.ts";
import { formatId, idRandomLength } from "../domain/id.ts";
import type { NewKey } from "../domain/key.ts";
import type { ImportedKey } from "../store/commands.ts";
import type { Management } from "../store/management.ts";
import { StateConflict } from "./conflict.ts";
import { ExpiresInThePast, NoSuchApi } from "./create-with-secret.ts";
import { createIdempotency, type IdempotencyKey } from "./idempotency.ts";
import { type EventDeps, newEvent } from "./new-event.ts";

export interface ImportKeysRequest {
  readonly apiId: string;
  readonly keys: readonly KeyToImport[];
}

export interface KeyToImport extends Omit<NewKey, "id" | "apiId" | "secretDigest" | "createdAtMs"> {
  /** The digest of the whole text that callers present: hex or base64. */
  readonly digest: string;
}

/** What became of one key: its id, or why it was not imported. */
export type ImportResult = { readonly keyId: string } | { readonly error: ImportError };

export interface ImportError {
  readonly code: "CONFLICT" | "BAD_REQUEST";
  readonly message: string;
}

const exists: ImportError = { code: "CONFLICT", message: "there is a key with this digest" };
const gone: ImportError = { code: "CONFLICT", message: "not imported then, or deleted since" };

/**
 * Stores what can be stored, and answers for each key in the order of the request. A key that cannot be stored fails alone; an
 * owner that the API requires and that is missing fails all of them.
 */
export async function importKeys(
  management: Management,
  request: ImportKeysRequest,
  idempotencyKey: IdempotencyKey | undefined,
  deps: EventDeps,
): Promise<readonly ImportResult[]> {
  const { random } = deps;
  const { apiId } = request;
  const event = newEvent(deps);
  const nowMs = event.atMs;
  const newId = (kind: "key" | "evt") => formatId(kind, nowMs, random.bytes(idRandomLength));
  /** The ids under which the keys are stored; null for one that cannot be. */
  const ids = request.keys.map(({ expiresAtMs }) => (isExpired(expiresAtMs, nowMs) ? null : newId("key")));
  const idempotency = idempotencyKey && createIdempotency<typeof ids>(idempotencyKey, request);
  const keys = request.keys.flatMap(({ digest, ...key }, at): ImportedKey[] => {
    const id = ids[at];
    if (typeof id !== "string") return [];
    const secretDigest = toDigest(digest);
    return [{ ...key, id, apiId, secretDigest, createdAtMs: nowMs, eventId: newId("evt") }];
  });

  if (keys.length === 0) {
    // A repeated request gets its first answer, even if the expiry of all keys has passed meanwhile.
    const kept = await idempotency?.find(management, nowMs);
    return kept === undefined ? resultsOf(ids, [], exists) : repeated(kept);
  }
  const command = { kind: "importKeys", apiId, keys, event } as const;
  const outcome = await management.change(command, idempotency?.record(ids, command, random));
  switch (outcome.outcome) {
    case "done":
      return resultsOf(ids, outcome.answer?.keyIds ?? [], exists);
    case "repeated":
      return repeated(idempotency?.open(outcome.record) ?? []);
    case "conflict":
      throw new StateConflict(outcome.reason);
    case "missing":
      throw new NoSuchApi();
  }

  /** By what is stored now. */
  async function repeated(first: typeof ids): Promise<readonly ImportResult[]> {
    const stored: string[] = [];
    for (const id of first) if (id !== null && (await management.read({ kind: "key", id }))) stored.push(id);
    return resultsOf(first, stored, gone);
  }

  /** `error`: of a key that could be stored and is not. */
  function resultsOf(given: typeof ids, stored: readonly string[], error: ImportError): readonly ImportResult[] {
    const storedIds = new Set<string | null>(stored);
    return given.map((keyId, at) => {
      if (keyId === null) return { error: expired(request.keys[at]?.expiresAtMs) };
      return storedIds.has(keyId) ? { keyId } : { error };
    });
  }
}

function expired(expiresAtMs = 0): ImportError {
  return { code: "BAD_REQUEST", message: `expires: ${new ExpiresInThePast(expiresAtMs).message}` };
}
