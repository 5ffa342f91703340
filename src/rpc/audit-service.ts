import type { MessageInitShape } from "@bufbuild/protobuf";
import type { AuditService, EventSchema } from "../../gen/latchkey/v1/audit_pb.js";
import type { StoredEvent } from "../domain/event.ts";
import type { ManagementHandlers } from "./endpoints.ts";
import { page } from "./resource-methods.ts";

/** The methods of AuditService. */
export function auditHandlers(): ManagementHandlers<typeof AuditService> {
  return {
    async listEvents(request, context) {
      const { targetId, rootKeyId: actor, method, since: sinceMs, until: untilMs } = request;
      const { items, cursor } = await page("events", request, context, { targetId, actor, method, sinceMs, untilMs });
      return { events: items.map(toEvent), cursor };
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
