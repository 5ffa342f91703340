import type { UpdateRemaining } from "../store/commands.ts";
import type { Management } from "../store/management.ts";
import { StateConflict } from "./conflict.ts";
import { changeOnce, type IdempotencyKey } from "./idempotency.ts";
import { type EventDeps, newEvent } from "./new-event.ts";

export type CounterOp = UpdateRemaining["op"];

/** Answers what is left in the counter, if there is one; undefined if there is no such key. Throws `StateConflict`. */
export async function updateRemaining(
  management: Management,
  request: Pick<UpdateRemaining, "keyId" | "op" | "value">,
  key: IdempotencyKey | undefined,
  deps: EventDeps,
): Promise<{ readonly remaining: number | undefined } | undefined> {
  const command = { kind: "updateRemaining", ...request, event: newEvent(deps) } as const;
  const { keyId } = request;
  const outcome = await changeOnce(management, command, keyId, { key, request, ...deps });
  switch (outcome.outcome) {
    case "done":
      return { remaining: outcome.answer?.remaining };
    case "conflict":
      throw new StateConflict(outcome.reason);
    case "missing":
      return undefined;
    case "repeated": {
      const found = await management.read({ kind: "key", keyId });
      return found && { remaining: found.counter?.remaining };
    }
  }
}
