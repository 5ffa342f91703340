import type { OwnerFieldChanges, StoredOwner } from "../domain/owner.ts";
import { areWhole, completeOwnerChanges, type OwnerChangeParts } from "../domain/partial-changes.ts";
import type { UpdateOwner } from "../store/commands.ts";
import type { Management } from "../store/management.ts";
import { changeInPart } from "./change-in-part.ts";
import { StateConflict } from "./conflict.ts";
import { changeOnce, type IdempotencyKey } from "./idempotency.ts";
import { type EventDeps, newEvent } from "./new-event.ts";

interface UpdateOwnerRequest extends Pick<UpdateOwner, "ownerId" | "ifVersion"> {
  readonly changes: OwnerChangeParts;
}

/** Answers the owner as it is then; undefined if there is no such owner. Throws `StateConflict`, `IncompleteRule` or `Forbidden`. */
export async function updateOwner(
  management: Management,
  request: UpdateOwnerRequest,
  key: IdempotencyKey | undefined,
  deps: EventDeps,
): Promise<StoredOwner | undefined> {
  const { ownerId, ifVersion, changes: parts } = request;
  const event = newEvent(deps);
  const read = () => management.read({ kind: "owner", ownerId });
  const change = (changes: OwnerFieldChanges, version: number | undefined) => {
    const command = { kind: "updateOwner", ownerId, ifVersion: version, changes, event } as const;
    return changeOnce(management, command, ownerId, { key, request, ...deps });
  };
  const complete = (stored: StoredOwner) => completeOwnerChanges(parts, stored);
  const outcome = await (areWhole(parts)
    ? change(parts as OwnerFieldChanges, ifVersion)
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
