import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  type OwnerSchema,
  type OwnersService,
  OwnersServiceUpdateRemainingRequestSchema,
  UpdateOwnerRequestSchema,
} from "../../gen/latchkey/v1/owners_pb.js";
import type { StoredOwner } from "../domain/owner.ts";
import { ownerFields } from "../domain/resources.ts";
import { requirePermission } from "../usecases/authorise.ts";
import { type DeleteOwnerRequest, deleteOwner } from "../usecases/delete-owner.ts";
import { createResource } from "../usecases/manage-resource.ts";
import type { EventDeps } from "../usecases/new-event.ts";
import type { ManagementHandlers } from "./endpoints.ts";
import { propertiesIn, shownResource } from "./field-messages.ts";
import { idempotencyKeyOf } from "./idempotency-key.ts";
import { changeRemaining, found, page, update } from "./resource-methods.ts";

/**
 * The methods of OwnersService. Each turns its message into a call of a use case, and the result into a message. The log has
 * no ids of owners: they are callers' own texts.
 */
export function ownersHandlers(deps: EventDeps): ManagementHandlers<typeof OwnersService> {
  return {
    async createOwner(request, context) {
      const { ownerId: id, remaining } = request;
      const owner = { id, remaining, ...propertiesIn(ownerFields, request) };
      const idempotencyKey = idempotencyKeyOf(context, request);
      return toOwner(await createResource(context.management, "owner", owner, owner, idempotencyKey, deps));
    },

    async getOwner({ ownerId: id }, { management }) {
      return toOwner(found("owner", await management.read({ kind: "owner", id })));
    },

    async listOwners(request, context) {
      const { items, cursor } = await page("owners", request, context);
      return { owners: items.map(toOwner), cursor };
    },

    async updateOwner(request, context) {
      return toOwner(await update("owner", request.ownerId, [UpdateOwnerRequestSchema, request], context, deps));
    },

    updateRemaining(request, context) {
      const asked = [OwnersServiceUpdateRemainingRequestSchema, request] as const;
      return changeRemaining("owner", request.ownerId, asked, context, deps);
    },

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

/** An owner as it is read. */
function toOwner({ id: ownerId, counter, ...stored }: StoredOwner): MessageInitShape<typeof OwnerSchema> {
  const shown = shownResource(ownerFields, { ...stored, id: ownerId, refill: counter?.refill });
  return { ...shown, ownerId, remaining: counter?.remaining };
}
