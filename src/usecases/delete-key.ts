import type { Management } from "../store/management.ts";
import { changeOnce, type IdempotencyKey } from "./idempotency.ts";
import { type EventDeps, newEvent } from "./new-event.ts";

/** Returns whether there was such a key. From then on this replica does not find it. */
export async function deleteKey(
  management: Pick<Management, "change">,
  keyId: string,
  key: IdempotencyKey | undefined,
  deps: EventDeps,
): Promise<boolean> {
  const command = { kind: "deleteKey", keyId, event: newEvent(deps) } as const;
  const { outcome } = await changeOnce(management, command, keyId, { key, request: { keyId }, ...deps });
  return outcome === "done" || outcome === "repeated";
}
