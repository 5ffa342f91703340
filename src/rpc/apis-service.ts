import { type ApisService, UpdateApiRequestSchema } from "../../gen/latchkey/v1/apis_pb.js";
import { createApi } from "../usecases/create-api.ts";
import { deleteApi } from "../usecases/delete-api.ts";
import type { EventDeps } from "../usecases/new-event.ts";
import { getApi, listApis } from "../usecases/read-apis.ts";
import { updateApi } from "../usecases/update-api.ts";
import { ApiError } from "./api-error.ts";
import { fromApisCursor, toApi, toApiChanges, toApisCursor, toKeyDefaults } from "./api-messages.ts";
import { changedFields, changesOf } from "./decoding/update-fields.ts";
import type { ManagementHandlers } from "./endpoints.ts";
import { idempotencyKeyOf } from "./idempotency-key.ts";

/** The methods of ApisService. Each turns its message into a call of a use case, and the result into a message. */
export function apisHandlers(deps: EventDeps): ManagementHandlers<typeof ApisService> {
  return {
    async createApi(request, context) {
      const { apiId, name, defaults } = request;
      const asked = { apiId, name, defaults: defaults === undefined ? {} : toKeyDefaults(defaults) };
      const { management } = context;
      const created = await createApi(management, asked, idempotencyKeyOf(context, apiId), deps);
      return toApi(created);
    },

    async getApi({ apiId }, { management }) {
      const found = await getApi(management, apiId);
      if (found === undefined) throw noSuchApi();
      return toApi(found);
    },

    async listApis({ limit, cursor }, { management }) {
      const after = cursor === undefined ? undefined : fromApisCursor(cursor);
      const { apis, next } = await listApis(management, { limit, after });
      return { apis: apis.map(toApi), cursor: next && toApisCursor(next) };
    },

    async updateApi(request, context) {
      const { apiId, ifVersion } = request;
      const changes = toApiChanges(changesOf(UpdateApiRequestSchema, request));
      const { management } = context;
      const updated = await updateApi(
        management,
        { apiId, ifVersion, changes },
        idempotencyKeyOf(context, apiId),
        deps,
      );
      if (updated === undefined) throw noSuchApi();
      context.note({ changed: changedFields(request) });
      return toApi(updated);
    },

    async deleteApi({ apiId, force = false }, context) {
      const { management } = context;
      const existed = await deleteApi(management, { apiId, force }, idempotencyKeyOf(context, apiId), deps);
      if (!existed) throw noSuchApi();
      return {};
    },
  };
}

export function noSuchApi(): ApiError {
  return new ApiError("NOT_FOUND", "there is no such API");
}
