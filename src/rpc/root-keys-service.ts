import { type DescService, getOption, type MessageInitShape } from "@bufbuild/protobuf";
import { permission } from "../../gen/latchkey/v1/options_pb.js";
import {
  type RootKeySchema,
  type RootKeysService,
  UpdateRootKeyRequestSchema,
} from "../../gen/latchkey/v1/root_keys_pb.js";
import { services } from "../../gen/latchkey/v1/services.ts";
import type { StoredRootKey } from "../domain/root-key.ts";
import { createRootKey } from "../usecases/create-root-key.ts";
import type { EventDeps } from "../usecases/new-event.ts";
import { revokeRootKey } from "../usecases/revoke-root-key.ts";
import { updateRootKey } from "../usecases/update-root-key.ts";
import { ApiError } from "./api-error.ts";
import { changesOf } from "./decoding/update-fields.ts";
import type { ManagementHandlers } from "./endpoints.ts";
import { idempotencyKeyOf } from "./idempotency-key.ts";
import { Violations } from "./invalid-request.ts";
import { fromCursor, toCursor } from "./page-cursor.ts";

const limitDefault = 50;

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
    async createRootKey({ name, permissions, apiIds, allApis, expires: expiresAtMs }, context) {
      const created = await createRootKey(
        context.management,
        {
          name,
          permissions: checkPermissions(permissions),
          apiIds: checkApis(apiIds.length === 0 ? undefined : apiIds, allApis),
          expiresAtMs,
        },
        idempotencyKeyOf(context),
        deps,
      );
      context.note({ rootKeyId: created.rootKeyId });
      return created;
    },

    async listRootKeys({ limit = limitDefault, cursor }, { management }) {
      const after = cursor === undefined ? undefined : fromCursor("rootKeys", cursor);
      const page = await management.read({ kind: "rootKeys", limit, after });
      return { rootKeys: page.rootKeys.map(toRootKey), cursor: page.cursor && toCursor("rootKeys", page.cursor) };
    },

    async updateRootKey(request, context) {
      const { rootKeyId, ifVersion } = request;
      const fields = changesOf(UpdateRootKeyRequestSchema, request);
      const { name, permissions, allApis, expires: expiresAtMs } = fields;
      const apis = checkApis(fields.apiIds, allApis);
      const apiIds = allApis === true ? null : apis;
      const changes = { name, permissions: permissions && checkPermissions(permissions), apiIds, expiresAtMs };
      const { management } = context;
      const updated = await updateRootKey(
        management,
        { rootKeyId, ifVersion, changes },
        idempotencyKeyOf(context),
        deps,
      );
      if (updated === undefined) throw noSuchRootKey();
      const changed = request.updateMask?.paths.join();
      context.note({ rootKeyId, changed });
      return toRootKey(updated);
    },

    async revokeRootKey({ rootKeyId }, context) {
      const existed = await revokeRootKey(context.management, rootKeyId, idempotencyKeyOf(context), deps);
      if (!existed) throw noSuchRootKey();
      context.note({ rootKeyId });
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

function noSuchRootKey(): ApiError {
  return new ApiError("NOT_FOUND", "there is no such root key");
}

function toRootKey(rootKey: StoredRootKey): MessageInitShape<typeof RootKeySchema> {
  const { id, start, name, permissions, apiIds, expiresAtMs, createdAtMs, updatedAtMs, version } = rootKey;
  return {
    rootKeyId: id,
    start,
    name,
    permissions: [...permissions],
    apiIds: [...(apiIds ?? [])],
    allApis: apiIds === undefined,
    expires: expiresAtMs,
    createdAt: createdAtMs,
    updatedAt: updatedAtMs,
    version,
  };
}
