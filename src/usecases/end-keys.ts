import { type DeleteApiKeys, type EndOwnerKeys, endedKeysMax } from "../store/commands.ts";
import type { Management } from "../store/management.ts";
import { type EventDeps, newEvent } from "./new-event.ts";

type Pieces<Command> = Omit<Command, "limit" | "after" | "event">;

/**
 * Ends all keys of an API or owner that is deleted, piece by piece. Several callers may do so at the same time: each piece is
 * a transaction of its own. It stops if the API or owner is gone or has changed.
 */
export async function endKeys(
  management: Pick<Management, "change">,
  ended: Pieces<DeleteApiKeys> | Pieces<EndOwnerKeys>,
  deps: EventDeps,
): Promise<void> {
  let after: string | undefined;
  do {
    const piece = await management.change({ ...ended, limit: endedKeysMax, after, event: newEvent(deps) });
    after = piece.outcome === "done" ? piece.answer?.cursor : undefined;
  } while (after !== undefined);
}
