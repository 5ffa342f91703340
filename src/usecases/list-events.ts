import type { Management } from "../store/management.ts";
import type { EventPage, EventsQuery } from "../store/queries.ts";

const limitDefault = 50;

/** A page of events, newest first. */
export function listEvents(
  management: Pick<Management, "read">,
  { limit = limitDefault, ...request }: Omit<EventsQuery, "kind" | "limit"> & { readonly limit?: number | undefined },
): Promise<EventPage> {
  return management.read({ kind: "events", limit, ...request });
}
