import { type DescService, getOption, type MessageInitShape } from "@bufbuild/protobuf";
import { permission } from "../../gen/latchkey/v1/options_pb.js";
import {
  type RootKeySchema,
  type RootKeysService,
  UpdateRootKeyRequestSchema,
} from "../../gen/latchkey/v1/root_keys_pb.js";
import { services } from "../../gen/latchkey/v1/services.ts";
import { rootKeyFields } from "../domain/resources.ts";
import type { StoredRootKey } from "../domain/root-key.ts";
import { createRootKey } from "../usecases/create-root-key.ts";
import { deleteResource } from "../usecases/manage-resource.ts";
import type { EventDeps } from "../usecases/new-event.ts";
import { changesOf } from "./decoding/update-fields.ts";
import type { ManagementHandlers } from "./endpoints.ts";
import { shownResource } from "./field-messages.ts";
import { idempotencyKeyOf } from "./idempotency-key.ts";
import { Violations } from "./invalid-request.ts";
import { found, page, update } from "./resource-methods.ts";

/** The methods of RootKeysService. */
export function rootKeysHandlers(deps: EventDeps): ManagementHandlers<typeof RootKeysService> {
  const known = knownPermissions(services);

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
      const created = await createRootKey(context.management, asked, idempotencyKeyOf(context, request), deps);
      context.note({ rootKeyId: created.rootKeyId });
      return created;
    },

    async listRootKeys(request, context) {
      const { items, cursor } = await page("rootKeys", request, context);
      return { rootKeys: items.map(toRootKey), cursor };
    },

    async updateRootKey(request, context) {
      const asked = [UpdateRootKeyRequestSchema, request] as const;
      const { permissions, apiIds, allApis, ...others } = changesOf(...asked);
      const apis = checkApis(apiIds, allApis);
      const changes = {
        ...others,
        permissions: permissions && checkPermissions(permissions),
        apiIds: allApis === true ? null : apis,
      };
      return toRootKey(await update("rootKey", request.rootKeyId, asked, context, deps, changes));
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
function checkApis<Absent>(
  apiIds: readonly string[] | Absent,
  allApis: boolean | undefined,
): readonly string[] | Absent {
  const violations = new Violations();
  const areSome = Array.isArray(apiIds);
  if (allApis === true && areSome) violations.add("apiIds", "must be left out where allApis is true");
  if (allApis === false && !areSome) violations.add("apiIds", "must not be absent where allApis is false");
  violations.throwIfAny();
  return apiIds;
}

/** Those of all methods, the groups of them, and all. */
function knownPermissions(all: readonly DescService[]): ReadonlySet<string> {
  const single = all.flatMap(({ methods }) => methods.map((method) => getOption(method, permission)));
  return new Set(["*", ...single.map((one) => one.replace(/\..*/, ".*")), ...single]);
}

function toRootKey({ id: rootKeyId, start, ...stored }: StoredRootKey): MessageInitShape<typeof RootKeySchema> {
  const shown = shownResource(rootKeyFields, { ...stored, id: rootKeyId });
  return { ...shown, rootKeyId, start, allApis: stored.apiIds === undefined };
}
