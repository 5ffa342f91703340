import type { Management } from "../store/management.ts";
import { StateConflict } from "./conflict.ts";
import { changeOnce, type IdempotencyKey } from "./idempotency.ts";
import { type EventDeps, newEvent } from "./new-event.ts";

/** Returns whether there was such an owner. From then on its keys share nothing on this replica. Throws `StateConflict`. */
export async function deleteOwner(
  management: Pick<Management, "change">,
  ownerId: string,
  key: IdempotencyKey | undefined,
  deps: EventDeps,
): Promise<boolean> {
  const command = { kind: "deleteOwner", ownerId, event: newEvent(deps) } as const;
  const outcome = await changeOnce(management, command, ownerId, { key, request: { ownerId }, ...deps });
  if (outcome.outcome === "conflict") throw new StateConflict(outcome.reason);
  return outcome.outcome !== "missing";
}
