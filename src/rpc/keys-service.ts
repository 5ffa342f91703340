import type { KeySchema, KeysService } from "../../gen/latchkey/v1/keys_pb.js";
import { sha256 } from "../ambient/crypto.ts";
import { createKey } from "../usecases/create-key.ts";
import { importKeys } from "../usecases/import-keys.ts";
import { deleteResource } from "../usecases/manage-resource.ts";
import type { EventDeps } from "../usecases/new-event.ts";
import { rerollKey } from "../usecases/reroll-key.ts";
import type { ManagementHandlers } from "./endpoints.ts";
import { secretsOf, toProperties } from "./key-messages.ts";
import { found, idempotencyKeyOf, resourceMethods } from "./resource-methods.ts";

/** The methods of KeysService that manage keys. */
export function keysHandlers(deps: EventDeps): ManagementHandlers<typeof KeysService> {
  const keys = resourceMethods<"key", typeof KeySchema>("key", deps, (key) => {
    return { apiId: key.apiId, start: key.start, secrets: secretsOf(key, deps.clock.nowMs()) };
  });
  return {
    async createKey(request, context) {
      const { apiId, prefix, byteLength, useDefaults = true } = request;
      const asked = { apiId, prefix, byteLength, useDefaults, ...toProperties(request) };
      return createKey(context.management, asked, idempotencyKeyOf(context, request), deps);
    },

    async getKey(request, context) {
      if (request.keyId !== undefined) return keys.get(request, context);
      const by = { digest: sha256(request.key ?? ""), nowMs: deps.clock.nowMs() };
      return keys.read(found("key", await context.management.read({ kind: "keyOfSecret", ...by })));
    },

    listKeys({ expiresBefore: expiresBeforeMs, limit, cursor, $typeName: _, ...filters }, context) {
      return keys.list({ limit, cursor }, context, { ...filters, expiresBeforeMs });
    },

    updateKey: keys.update,
    updateRemaining: keys.updateRemaining,

    async rerollKey(request, context) {
      const { keyId, overlap: overlapMs = 0, byteLength } = request;
      const asked = { keyId, overlapMs, byteLength };
      const rerolled = await rerollKey(context.management, asked, idempotencyKeyOf(context, request), deps);
      const answer = found("key", rerolled);
      context.note({ changed: "secrets" });
      return answer;
    },

    async importKeys(request, context) {
      const { apiId } = request;
      const keys = request.keys.map((key) => ({ digest: key.digest, start: key.start ?? "", ...toProperties(key) }));
      const idempotencyKey = idempotencyKeyOf(context, request);
      const results = await importKeys(context.management, { apiId, keys }, idempotencyKey, deps);
      const imported = results.filter((result) => "keyId" in result).length;
      context.note({ imported, refused: results.length - imported });
      return { results: [...results] };
    },

    async deleteKey(request, context) {
      const idempotencyKey = idempotencyKeyOf(context, request);
      found("key", await deleteResource(context.management, "deleteKey", request.keyId, idempotencyKey, deps));
      return {};
    },
  };
}
