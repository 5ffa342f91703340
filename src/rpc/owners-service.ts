import type { OwnerSchema, OwnersService } from "../../gen/latchkey/v1/owners_pb.js";
import { ownerFields } from "../domain/resources.ts";
import { requirePermission } from "../usecases/authorise.ts";
import { type DeleteOwnerRequest, deleteOwner } from "../usecases/delete-owner.ts";
import { createResource } from "../usecases/manage-resource.ts";
import type { EventDeps } from "../usecases/new-event.ts";
import type { ManagementHandlers } from "./endpoints.ts";
import { propertiesIn } from "./field-messages.ts";
import { found, idempotencyKeyOf, resourceMethods } from "./resource-methods.ts";

/** The methods of OwnersService. The log has no ids of owners: they are callers' own texts. */
export function ownersHandlers(deps: EventDeps): ManagementHandlers<typeof OwnersService> {
  const owners = resourceMethods<"owner", typeof OwnerSchema>("owner", deps);
  return {
    async createOwner(request, context) {
      const { ownerId: id, remaining } = request;
      const owner = { id, remaining, ...propertiesIn(ownerFields, request) };
      const idempotencyKey = idempotencyKeyOf(context, request);
      return owners.read(await createResource(context.management, "owner", owner, owner, idempotencyKey, deps));
    },

    getOwner: owners.get,
    listOwners: owners.list,
    updateOwner: owners.update,
    updateRemaining: owners.updateRemaining,

    async deleteOwner(request, context) {
      const { ownerId } = request;
      // The message's rules allow no other.
      const keys = request.keys as DeleteOwnerRequest["keys"];
      if (keys === "disable") requirePermission(context.caller, "keys.update");
      if (keys === "delete") requirePermission(context.caller, "keys.delete");
      const idempotencyKey = idempotencyKeyOf(context, request);
      found("owner", await deleteOwner(context.management, { ownerId, keys }, idempotencyKey, deps));
      return {};
    },
  };
}
