import type { Ambient } from "../ambient/ambient.ts";
import type { ConflictReason, Management, UpdateRemaining } from "../store/management.ts";

export type CounterOp = UpdateRemaining["op"];

/** The counter does not allow the change, and nothing has changed. Safe to show to the caller. */
export class CounterConflict extends Error {
  override readonly name = "CounterConflict";
}

const said: Readonly<Record<ConflictReason, string>> = {
  noCounter: "the key has no counter; set one first",
  belowZero: "the counter would fall below 0",
  aboveMax: "the counter would rise above 2147483647",
};

/** Answers what is left in the counter, if there is one; undefined if there is no such key. Throws `CounterConflict`. */
export async function updateRemaining(
  management: Pick<Management, "change">,
  request: Pick<UpdateRemaining, "keyId" | "op" | "value">,
  { clock }: Pick<Ambient, "clock">,
): Promise<{ readonly remaining: number | undefined } | undefined> {
  const outcome = await management.change({ kind: "updateRemaining", ...request, atMs: clock.nowMs() });
  switch (outcome.outcome) {
    case "done":
      return { remaining: outcome.answer?.remaining };
    case "conflict":
      throw new CounterConflict(said[outcome.reason]);
    default:
      return undefined;
  }
}
