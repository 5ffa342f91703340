import type { MessageInitShape } from "@bufbuild/protobuf";
import { type ApiSchema, type ApisService, UpdateApiRequestSchema } from "../../gen/latchkey/v1/apis_pb.js";
import type { StoredApi } from "../domain/api.ts";
import { formatId, idRandomLength } from "../domain/id.ts";
import { apiFields } from "../domain/resources.ts";
import { deleteApi } from "../usecases/delete-api.ts";
import { createResource } from "../usecases/manage-resource.ts";
import type { EventDeps } from "../usecases/new-event.ts";
import type { ManagementHandlers } from "./endpoints.ts";
import { propertiesIn, shownResource } from "./field-messages.ts";
import { idempotencyKeyOf } from "./idempotency-key.ts";
import { found, page, update } from "./resource-methods.ts";

/** The methods of ApisService. Each turns its message into a call of a use case, and the result into a message. */
export function apisHandlers(deps: EventDeps): ManagementHandlers<typeof ApisService> {
  const { clock, random } = deps;
  return {
    async createApi(request, context) {
      const asked = { apiId: request.apiId, ...propertiesIn(apiFields, request) };
      const { apiId: id = formatId("api", clock.nowMs(), random.bytes(idRandomLength)), ...properties } = asked;
      const idempotencyKey = idempotencyKeyOf(context, request);
      const { management } = context;
      // As it came, by which a repeated request is recognised, also after an upgrade.
      const given = { ...asked, ownersRequired: request.ownersRequired };
      return toApi(await createResource(management, "api", { id, ...properties }, given, idempotencyKey, deps));
    },

    async getApi({ apiId: id }, { management }) {
      return toApi(found("api", await management.read({ kind: "api", id })));
    },

    async listApis(request, context) {
      const { items, cursor } = await page("apis", request, context);
      return { apis: items.map(toApi), cursor };
    },

    async updateApi(request, context) {
      return toApi(await update("api", request.apiId, [UpdateApiRequestSchema, request], context, deps));
    },

    async deleteApi(request, context) {
      const { apiId, force = false } = request;
      const idempotencyKey = idempotencyKeyOf(context, request);
      found("api", await deleteApi(context.management, { apiId, force }, idempotencyKey, deps));
      return {};
    },
  };
}

/** An API as it is read. */
function toApi(api: StoredApi): MessageInitShape<typeof ApiSchema> {
  return { apiId: api.id, ...shownResource(apiFields, { ...api }) };
}
