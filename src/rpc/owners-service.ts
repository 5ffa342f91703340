import {
  type OwnersService,
  OwnersServiceUpdateRemainingRequestSchema,
  UpdateOwnerRequestSchema,
} from "../../gen/latchkey/v1/owners_pb.js";
import { requirePermission } from "../usecases/authorise.ts";
import { createOwner } from "../usecases/create-owner.ts";
import { type DeleteOwnerRequest, deleteOwner } from "../usecases/delete-owner.ts";
import type { EventDeps } from "../usecases/new-event.ts";
import { getOwner, listOwners } from "../usecases/read-owners.ts";
import { updateOwner } from "../usecases/update-owner.ts";
import { updateRemaining } from "../usecases/update-remaining.ts";
import { ApiError } from "./api-error.ts";
import { changedFields, changesOf } from "./decoding/update-fields.ts";
import type { ManagementHandlers } from "./endpoints.ts";
import { idempotencyKeyOf } from "./idempotency-key.ts";
import { toCounterChange } from "./key-messages.ts";
import { toNewOwner, toOwner, toOwnerChanges } from "./owner-messages.ts";
import { fromCursor, toCursor } from "./page-cursor.ts";

/**
 * The methods of OwnersService. Each turns its message into a call of a use case, and the result into a message. The log has
 * no ids of owners: they are callers' own texts.
 */
export function ownersHandlers(deps: EventDeps): ManagementHandlers<typeof OwnersService> {
  return {
    async createOwner(request, context) {
      const { management } = context;
      const created = await createOwner(management, toNewOwner(request), idempotencyKeyOf(context), deps);
      return toOwner(created);
    },

    async getOwner({ ownerId }, { management }) {
      const found = await getOwner(management, ownerId);
      if (found === undefined) throw noSuchOwner();
      return toOwner(found);
    },

    async listOwners({ limit, cursor }, { management }) {
      const after = cursor === undefined ? undefined : fromCursor("owners", cursor);
      const page = await listOwners(management, { limit, after });
      return { owners: page.owners.map(toOwner), cursor: page.cursor && toCursor("owners", page.cursor) };
    },

    async updateOwner(request, context) {
      const { ownerId, ifVersion } = request;
      const changes = toOwnerChanges(changesOf(UpdateOwnerRequestSchema, request));
      const { management } = context;
      const updated = await updateOwner(management, { ownerId, ifVersion, changes }, idempotencyKeyOf(context), deps);
      if (updated === undefined) throw noSuchOwner();
      context.note({ changed: changedFields(request) });
      return toOwner(updated);
    },

    async updateRemaining(request, context) {
      const { ownerId } = request;
      const change = toCounterChange(request.op, changesOf(OwnersServiceUpdateRemainingRequestSchema, request));
      const { management } = context;
      const updated = await updateRemaining(management, { ownerId, ...change }, idempotencyKeyOf(context), deps);
      if (updated === undefined) throw noSuchOwner();
      context.note({ changed: "remaining" });
      return updated;
    },

    async deleteOwner(request, context) {
      const { ownerId } = request;
      // The message's rules allow no other.
      const keys = request.keys as DeleteOwnerRequest["keys"];
      if (keys === "disable") requirePermission(context.caller, "keys.update");
      if (keys === "delete") requirePermission(context.caller, "keys.delete");
      const { management } = context;
      const existed = await deleteOwner(management, { ownerId, keys }, idempotencyKeyOf(context), deps);
      if (!existed) throw noSuchOwner();
      return {};
    },
  };
}

function noSuchOwner(): ApiError {
  return new ApiError("NOT_FOUND", "there is no such owner");
}
