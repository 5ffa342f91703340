import type { StoredRootKey } from "../domain/root-key.ts";
import type { UpdateRootKey } from "../store/commands.ts";
import type { Management } from "../store/management.ts";
import { StateConflict } from "./conflict.ts";
import { changeOnce, type IdempotencyKey } from "./idempotency.ts";
import { type EventDeps, newEvent } from "./new-event.ts";

/** Answers the root key as it is then; undefined if there is no such root key. Throws `StateConflict`. */
export async function updateRootKey(
  management: Management,
  request: Pick<UpdateRootKey, "rootKeyId" | "ifVersion" | "changes">,
  key: IdempotencyKey | undefined,
  deps: EventDeps,
): Promise<StoredRootKey | undefined> {
  const { rootKeyId, ifVersion } = request;
  const event = newEvent(deps);
  const { expiresAtMs } = request.changes;
  // An expiry in the past means now.
  const changes = expiresAtMs
    ? { ...request.changes, expiresAtMs: Math.max(expiresAtMs, event.atMs) }
    : request.changes;
  const command = { kind: "updateRootKey", rootKeyId, ifVersion, changes, event } as const;
  const outcome = await changeOnce(management, command, rootKeyId, { key, request, ...deps });
  switch (outcome.outcome) {
    case "done":
      return outcome.answer;
    case "conflict":
      throw new StateConflict(outcome.reason);
    case "missing":
      return undefined;
    case "repeated":
      return management.read({ kind: "rootKey", rootKeyId });
  }
}
