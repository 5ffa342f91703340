import type { Management } from "../store/management.ts";
import { StateConflict } from "./conflict.ts";
import { changeOnce, type IdempotencyKey } from "./idempotency.ts";
import { type EventDeps, newEvent } from "./new-event.ts";

/** Returns whether there was such a root key. From then on this replica refuses it. */
export async function revokeRootKey(
  management: Pick<Management, "change">,
  rootKeyId: string,
  key: IdempotencyKey | undefined,
  deps: EventDeps,
): Promise<boolean> {
  const command = { kind: "revokeRootKey", rootKeyId, event: newEvent(deps) } as const;
  const outcome = await changeOnce(management, command, rootKeyId, { key, request: { rootKeyId }, ...deps });
  if (outcome.outcome === "conflict") throw new StateConflict(outcome.reason);
  return outcome.outcome !== "missing";
}
