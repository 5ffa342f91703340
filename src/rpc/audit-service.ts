import type { MessageInitShape } from "@bufbuild/protobuf";
import type { AuditService, EventSchema } from "../../gen/latchkey/v1/audit_pb.js";
import type { StoredEvent } from "../domain/event.ts";
import { listEvents } from "../usecases/list-events.ts";
import type { ManagementHandlers } from "./endpoints.ts";
import { fromCursor, toCursor } from "./page-cursor.ts";

/** The methods of AuditService. */
export function auditHandlers(): ManagementHandlers<typeof AuditService> {
  return {
    async listEvents({ targetId, rootKeyId, method, since, until, limit, cursor }, { management }) {
      const after = cursor === undefined ? undefined : fromCursor("events", cursor);
      const filters = { targetId, actor: rootKeyId, method, sinceMs: since, untilMs: until };
      const page = await listEvents(management, { ...filters, limit, after });
      return { events: page.events.map(toEvent), cursor: page.cursor && toCursor("events", page.cursor) };
    },
  };
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
