import type { NewOwner, StoredOwner } from "../domain/owner.ts";
import type { Management } from "../store/management.ts";
import { StateConflict } from "./conflict.ts";
import { changeOnce, IdempotencyConflict, type IdempotencyKey } from "./idempotency.ts";
import { type EventDeps, newEvent } from "./new-event.ts";

/** Answers the owner. Throws `StateConflict`, `IdempotencyConflict` or `Forbidden`. */
export async function createOwner(
  management: Management,
  owner: NewOwner,
  key: IdempotencyKey | undefined,
  deps: EventDeps,
): Promise<StoredOwner> {
  const command = { kind: "createOwner", owner, event: newEvent(deps) } as const;
  const outcome = await changeOnce(management, command, owner.id, { key, request: owner, ...deps });
  if (outcome.outcome === "conflict") throw new StateConflict(outcome.reason);
  if (outcome.outcome === "done") return outcome.answer as StoredOwner;
  const created = await management.read({ kind: "owner", ownerId: owner.id });
  if (created !== undefined) return created;
  throw new IdempotencyConflict("this Idempotency-Key has created the owner, which was deleted since");
}
