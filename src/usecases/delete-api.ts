import type { Management } from "../store/management.ts";
import { StateConflict } from "./conflict.ts";
import { endKeys } from "./end-keys.ts";
import { changeOnce, type IdempotencyKey } from "./idempotency.ts";
import { type EventDeps, newEvent } from "./new-event.ts";

/** Returns whether there was such an API. Throws `StateConflict` if it has keys and they are not to be deleted. */
export async function deleteApi(
  management: Pick<Management, "change">,
  request: { readonly apiId: string; readonly force: boolean },
  key: IdempotencyKey | undefined,
  deps: EventDeps,
): Promise<boolean> {
  const { apiId, force } = request;
  const event = newEvent(deps);
  // The first command is the one that is kept: a repeated request never deletes an API that was made again meanwhile.
  const first = force
    ? ({ kind: "stopApi", id: apiId, event } as const)
    : ({ kind: "deleteApi", id: apiId, isStopped: false, event } as const);
  const { outcome, ...rest } = await changeOnce(management, first, { key, request, ...deps });
  if (outcome === "conflict" && "reason" in rest) throw new StateConflict(rest.reason);
  if (outcome === "missing") return false;
  if (force) await deleteStoppedApi(management, apiId, deps);
  return true;
}

/** Several callers may do so at the same time: each step is a transaction of its own. */
async function deleteStoppedApi(management: Pick<Management, "change">, apiId: string, deps: EventDeps): Promise<void> {
  for (;;) {
    await endKeys(management, { kind: "deleteApiKeys", id: apiId }, deps);
    const last = { kind: "deleteApi", id: apiId, isStopped: true, event: newEvent(deps) } as const;
    const { outcome } = await management.change(last);
    // A conflict: a key was still being stored when the API stopped to take keys.
    if (outcome !== "conflict") return;
  }
}
