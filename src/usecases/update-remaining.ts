import { type CounterChange, targetIdOf } from "../store/commands.ts";
import type { Management } from "../store/management.ts";
import { StateConflict } from "./conflict.ts";
import { changeOnce, type IdempotencyKey } from "./idempotency.ts";
import { type EventDeps, newEvent } from "./new-event.ts";

export type { CounterChange };

/** Whose counter it is: a key's own, or the one that all keys of an owner share. */
type Holder = { readonly keyId: string } | { readonly ownerId: string };

/** Answers what is left in the counter, if there is one; undefined if there is no such key or owner. Throws `StateConflict`. */
export async function updateRemaining(
  management: Management,
  request: Holder & CounterChange,
  key: IdempotencyKey | undefined,
  deps: EventDeps,
): Promise<{ readonly remaining: number | undefined } | undefined> {
  const event = newEvent(deps);
  const [command, query] =
    "keyId" in request
      ? ([
          { kind: "updateRemaining", ...request, event },
          { kind: "key", keyId: request.keyId },
        ] as const)
      : ([
          { kind: "updateOwnerRemaining", ...request, event },
          { kind: "owner", ownerId: request.ownerId },
        ] as const);
  const outcome = await changeOnce(management, command, targetIdOf(command), { key, request, ...deps });
  switch (outcome.outcome) {
    case "done":
      return { remaining: outcome.answer?.remaining };
    case "conflict":
      throw new StateConflict(outcome.reason);
    case "missing":
      return undefined;
    case "repeated": {
      const found = await management.read(query);
      return found && { remaining: found.counter?.remaining };
    }
  }
}
