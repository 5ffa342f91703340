import { type DescService, getOption } from "@bufbuild/protobuf";
import { permission } from "../../gen/latchkey/v1/options_pb.js";
import type { RootKeySchema, RootKeysService } from "../../gen/latchkey/v1/root_keys_pb.js";
import { services } from "../../gen/latchkey/v1/services.ts";
import { deleteResource } from "../usecases/manage-resource.ts";
import type { EventDeps } from "../usecases/new-event.ts";
import { createRootKey } from "../usecases/root-keys.ts";
import type { ManagementHandlers } from "./endpoints.ts";
import { invalid, Violations } from "./invalid-request.ts";
import { found, idempotencyKeyOf, resourceMethods, updateIn } from "./resource-methods.ts";

/** The methods of RootKeysService. */
export function rootKeysHandlers(deps: EventDeps): ManagementHandlers<typeof RootKeysService> {
  const known = knownPermissions(services);
  const rootKeys = resourceMethods<"rootKey", typeof RootKeySchema>("rootKey", deps, ({ start, apiIds }) => {
    return { start, allApis: apiIds === undefined };
  });

  function checkPermissions(permissions: readonly string[]): readonly string[] {
    const violations = new Violations();
    if (permissions.length === 0) violations.add("permissions", "must not be empty");
    for (const [index, one] of permissions.entries()) {
      if (!known.has(one)) violations.add(`permissions[${index}]`, `is not known (known: ${[...known].join(", ")})`);
    }
    violations.throwIfAny();
    return permissions;
  }

  return {
    async createRootKey(request, context) {
      const { name, permissions, apiIds, allApis, expires: expiresAtMs } = request;
      const asked = {
        name,
        permissions: checkPermissions(permissions),
        apiIds: checkApis(apiIds.length === 0 ? undefined : apiIds, allApis),
        expiresAtMs,
      };
      return createRootKey(context.management, asked, idempotencyKeyOf(context, request), deps);
    },

    listRootKeys: rootKeys.list,

    async updateRootKey(request, context) {
      const { permissions, apiIds, allApis, ...others } = updateIn(request, context);
      const apis = checkApis(apiIds, allApis);
      return rootKeys.update(request, context, {
        ...others,
        permissions: permissions && checkPermissions(permissions),
        apiIds: allApis === true ? null : apis,
      });
    },

    async revokeRootKey(request, context) {
      const idempotencyKey = idempotencyKeyOf(context, request);
      const revoked = deleteResource(context.management, "revokeRootKey", request.rootKeyId, idempotencyKey, deps);
      found("rootKey", await revoked);
      return {};
    },
  };
}

/** `allApis` may leave the APIs out or say the same as they do, never the opposite. */
function checkApis<Absent>(apiIds: readonly string[] | Absent, allApis?: boolean): readonly string[] | Absent {
  const areSome = Array.isArray(apiIds);
  if (allApis === true && areSome) throw invalid("apiIds", "must be left out where allApis is true");
  if (allApis === false && !areSome) throw invalid("apiIds", "must not be absent where allApis is false");
  return apiIds;
}

/** Those of all methods, the groups of them, and all. */
function knownPermissions(all: readonly DescService[]): ReadonlySet<string> {
  const single = all.flatMap(({ methods }) => methods.map((method) => getOption(method, permission)));
  return new Set(["*", ...single.map((one) => one.replace(/\..*/, ".*")), ...single]);
}
