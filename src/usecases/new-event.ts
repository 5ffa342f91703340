import type { Ambient } from "../ambient/ambient.ts";
import { formatId, idRandomLength } from "../domain/id.ts";
import type { NewEvent } from "../store/commands.ts";

/** Replaced where root keys are known. */
const unknownActor = "unknown";

/** What a use case that changes something needs to name its change. */
export type EventDeps = Pick<Ambient, "clock" | "random">;

export function newEvent({ clock, random }: EventDeps, atMs = clock.nowMs()): NewEvent {
  return { id: formatId("evt", atMs, random.bytes(idRandomLength)), atMs, actor: unknownActor };
}
