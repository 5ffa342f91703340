import type { StoredOwner } from "../domain/owner.ts";
import type { UpdateOwner } from "../store/commands.ts";
import type { Management } from "../store/management.ts";
import { StateConflict } from "./conflict.ts";
import { changeOnce, type IdempotencyKey } from "./idempotency.ts";
import { type EventDeps, newEvent } from "./new-event.ts";

/** Answers the owner as it is then; undefined if there is no such owner. Throws `StateConflict` or `Forbidden`. */
export async function updateOwner(
  management: Management,
  request: Pick<UpdateOwner, "ownerId" | "ifVersion" | "changes">,
  key: IdempotencyKey | undefined,
  deps: EventDeps,
): Promise<StoredOwner | undefined> {
  const { ownerId } = request;
  const command = { kind: "updateOwner", ...request, event: newEvent(deps) } as const;
  const outcome = await changeOnce(management, command, ownerId, { key, request, ...deps });
  switch (outcome.outcome) {
    case "done":
      return outcome.answer;
    case "conflict":
      throw new StateConflict(outcome.reason);
    case "missing":
      return undefined;
    case "repeated":
      return management.read({ kind: "owner", ownerId });
  }
}
