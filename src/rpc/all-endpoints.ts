import { ApisService } from "../../gen/latchkey/v1/apis_pb.js";
import { AuditService } from "../../gen/latchkey/v1/audit_pb.js";
import { KeysService } from "../../gen/latchkey/v1/keys_pb.js";
import { OwnersService } from "../../gen/latchkey/v1/owners_pb.js";
import { RatelimitsService } from "../../gen/latchkey/v1/ratelimits_pb.js";
import { RootKeysService } from "../../gen/latchkey/v1/root_keys_pb.js";
import { UsageService } from "../../gen/latchkey/v1/usage_pb.js";
import type { LimitDeps } from "../usecases/limit.ts";
import type { EventDeps } from "../usecases/new-event.ts";
import { apisHandlers } from "./apis-service.ts";
import type { Endpoint } from "./call.ts";
import { createEndpoints, type ManagementHandlers, permissionOf } from "./endpoints.ts";
import { keysHandlers } from "./keys-service.ts";
import { ownersHandlers } from "./owners-service.ts";
import { page } from "./resource-methods.ts";
import { rootKeysHandlers } from "./root-keys-service.ts";
import { usageHandlers } from "./usage-service.ts";
import { ratelimitsHandlers, type VerificationDeps, verificationHandlers } from "./verification-service.ts";

/** What a root key needs to have a verification explained. */
export const explainPermission = permissionOf(KeysService.method.explainKey);

export type FrontDeps = VerificationDeps & LimitDeps;

/**
 * The methods of all services. `front`: where callers are answered. `core`: where the core is. A method of the other side has
 * nothing that handles it here.
 */
export function createAllEndpoints({ front, core }: { front?: FrontDeps; core?: EventDeps | undefined }): Endpoint[] {
  return [
    ...createEndpoints(ApisService, core ? apisHandlers(core) : {}),
    ...createEndpoints(KeysService, {
      ...(core && keysHandlers(core)),
      ...(front && verificationHandlers(front)),
    }),
    ...createEndpoints(OwnersService, core ? ownersHandlers(core) : {}),
    ...createEndpoints(RootKeysService, core ? rootKeysHandlers(core) : {}),
    ...createEndpoints(UsageService, core ? usageHandlers(core) : {}),
    ...createEndpoints(AuditService, core ? auditHandlers() : {}),
    ...createEndpoints(RatelimitsService, front ? ratelimitsHandlers(front) : {}),
  ];
}

/** The methods of AuditService. */
function auditHandlers(): ManagementHandlers<typeof AuditService> {
  return {
    async listEvents(request, context) {
      const { targetId, rootKeyId: actor, method, since: sinceMs, until: untilMs } = request;
      const { items, cursor } = await page("events", request, context, { targetId, actor, method, sinceMs, untilMs });
      const events = items.map(({ atMs: at, actor: rootKeyId, fields, ...event }) => {
        return { ...event, at, rootKeyId, fields: [...fields] };
      });
      return { events, cursor };
    },
  };
}
