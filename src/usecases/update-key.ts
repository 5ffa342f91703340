import type { KeyFieldChanges, StoredKey } from "../domain/key.ts";
import type { UpdateKey } from "../store/commands.ts";
import type { Management } from "../store/management.ts";
import { StateConflict } from "./conflict.ts";
import { changeOnce, type IdempotencyKey } from "./idempotency.ts";
import { type EventDeps, newEvent } from "./new-event.ts";

/** Answers the key as it is then; undefined if there is no such key. Throws `StateConflict`. */
export async function updateKey(
  management: Management,
  request: Pick<UpdateKey, "keyId" | "ifVersion" | "changes">,
  key: IdempotencyKey | undefined,
  deps: EventDeps,
): Promise<StoredKey | undefined> {
  const { keyId, ifVersion } = request;
  const event = newEvent(deps);
  const changes = notBefore(event.atMs, request.changes);
  const command = { kind: "updateKey", keyId, ifVersion, changes, event } as const;
  const outcome = await changeOnce(management, command, keyId, { key, request, ...deps });
  switch (outcome.outcome) {
    case "done":
      return outcome.answer;
    case "conflict":
      throw new StateConflict(outcome.reason);
    case "missing":
      return undefined;
    case "repeated":
      return management.read({ kind: "key", keyId });
  }
}

/** An expiry in the past means now. */
function notBefore(nowMs: number, changes: KeyFieldChanges): KeyFieldChanges {
  const { expiresAtMs } = changes;
  return expiresAtMs && expiresAtMs < nowMs ? { ...changes, expiresAtMs: nowMs } : changes;
}
