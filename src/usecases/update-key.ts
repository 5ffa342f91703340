import type { KeyFieldChanges, StoredKey } from "../domain/key.ts";
import { areWhole, completeKeyChanges, type KeyChangeParts } from "../domain/partial-changes.ts";
import type { UpdateKey } from "../store/commands.ts";
import type { Management } from "../store/management.ts";
import { changeInPart } from "./change-in-part.ts";
import { StateConflict } from "./conflict.ts";
import { changeOnce, type IdempotencyKey } from "./idempotency.ts";
import { type EventDeps, newEvent } from "./new-event.ts";

interface UpdateKeyRequest extends Pick<UpdateKey, "keyId" | "ifVersion"> {
  readonly changes: KeyChangeParts;
}

/** Answers the key as it is then; undefined if there is no such key. Throws `StateConflict` or `IncompleteRule`. */
export async function updateKey(
  management: Management,
  request: UpdateKeyRequest,
  key: IdempotencyKey | undefined,
  deps: EventDeps,
): Promise<StoredKey | undefined> {
  const { keyId, ifVersion } = request;
  const event = newEvent(deps);
  const parts = notBefore(event.atMs, request.changes);
  const read = () => management.read({ kind: "key", keyId });
  const change = (changes: KeyFieldChanges, version: number | undefined) => {
    const command = { kind: "updateKey", keyId, ifVersion: version, changes, event } as const;
    return changeOnce(management, command, keyId, { key, request, ...deps });
  };
  const complete = (stored: StoredKey) => completeKeyChanges(parts, stored);
  const outcome = await (areWhole(parts)
    ? change(parts as KeyFieldChanges, ifVersion)
    : changeInPart({ ifVersion, read, complete, change }));
  switch (outcome.outcome) {
    case "done":
      return outcome.answer;
    case "conflict":
      throw new StateConflict(outcome.reason);
    case "missing":
      return undefined;
    case "repeated":
      return read();
  }
}

/** An expiry in the past means now. */
function notBefore(nowMs: number, changes: KeyChangeParts): KeyChangeParts {
  const { expiresAtMs } = changes;
  return expiresAtMs && expiresAtMs < nowMs ? { ...changes, expiresAtMs: nowMs } : changes;
}
