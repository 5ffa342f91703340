import type { MessageInitShape } from "@bufbuild/protobuf";
import { AuditService, type EventSchema } from "../../gen/latchkey/v1/audit_pb.js";
import type { StoredEvent } from "../domain/event.ts";
import { listEvents } from "../usecases/list-events.ts";
import type { Endpoint } from "./call.ts";
import { createEndpoints } from "./endpoints.ts";
import { fromCursor, toCursor } from "./page-cursor.ts";

/** The methods of AuditService. */
export function createAuditEndpoints(): Endpoint[] {
  return createEndpoints(AuditService, {
    async listEvents({ targetId, rootKeyId, method, since, until, limit, cursor }, { caller }) {
      const after = cursor === undefined ? undefined : fromCursor("events", cursor);
      const filters = { targetId, actor: rootKeyId, method, sinceMs: since, untilMs: until };
      const page = await listEvents(caller.management, { ...filters, limit, after });
      return { events: page.events.map(toEvent), cursor: page.cursor && toCursor("events", page.cursor) };
    },
  });
}

function toEvent({ id, atMs, method, actor, targetId, apiId, fields, version }: StoredEvent) {
  return {
    id,
    at: atMs,
    method,
    rootKeyId: actor,
    targetId,
    apiId,
    fields: [...fields],
    version,
  } satisfies MessageInitShape<typeof EventSchema>;
}
