import type { ApiSchema, ApisService } from "../../gen/latchkey/v1/apis_pb.js";
import { formatId, idRandomLength } from "../domain/id.ts";
import { apiFields } from "../domain/resources.ts";
import { deleteApi } from "../usecases/delete-api.ts";
import { createResource } from "../usecases/manage-resource.ts";
import type { EventDeps } from "../usecases/new-event.ts";
import type { ManagementHandlers } from "./endpoints.ts";
import { propertiesIn } from "./field-messages.ts";
import { found, idempotencyKeyOf, resourceMethods } from "./resource-methods.ts";

/** The methods of ApisService. */
export function apisHandlers(deps: EventDeps): ManagementHandlers<typeof ApisService> {
  const { clock, random } = deps;
  const apis = resourceMethods<"api", typeof ApiSchema>("api", deps);
  return {
    async createApi(request, context) {
      const asked = { apiId: request.apiId, ...propertiesIn(apiFields, request) };
      const { apiId: id = formatId("api", clock.nowMs(), random.bytes(idRandomLength)), ...properties } = asked;
      const idempotencyKey = idempotencyKeyOf(context, request);
      // As it came, by which a repeated request is recognised, also after an upgrade.
      const given = { ...asked, ownersRequired: request.ownersRequired };
      const created = { id, ...properties };
      return apis.read(await createResource(context.management, "api", created, given, idempotencyKey, deps));
    },

    getApi: apis.get,
    listApis: apis.list,
    updateApi: apis.update,

    async deleteApi(request, context) {
      const { apiId, force = false } = request;
      const idempotencyKey = idempotencyKeyOf(context, request);
      found("api", await deleteApi(context.management, { apiId, force }, idempotencyKey, deps));
      return {};
    },
  };
}
