import {
  type KeysService,
  UpdateKeyRequestSchema,
  UpdateRemainingRequestSchema,
} from "../../gen/latchkey/v1/keys_pb.js";
import { sha256 } from "../ambient/crypto.ts";
import { createKey } from "../usecases/create-key.ts";
import { importKeys } from "../usecases/import-keys.ts";
import { deleteResource } from "../usecases/manage-resource.ts";
import type { EventDeps } from "../usecases/new-event.ts";
import { rerollKey } from "../usecases/reroll-key.ts";
import type { ManagementHandlers } from "./endpoints.ts";
import { idempotencyKeyOf } from "./idempotency-key.ts";
import { toKey, toProperties } from "./key-messages.ts";
import { changeRemaining, found, page, update } from "./resource-methods.ts";

/** The methods of KeysService that manage keys. Each turns its message into a call of a use case, and the result into a message. */
export function keysHandlers(deps: EventDeps): ManagementHandlers<typeof KeysService> {
  return {
    async createKey(request, context) {
      const { apiId, prefix, byteLength, useDefaults = true } = request;
      const asked = { apiId, prefix, byteLength, useDefaults, ...toProperties(request) };
      const created = await createKey(context.management, asked, idempotencyKeyOf(context, request), deps);
      context.note({ keyId: created.keyId });
      return created;
    },

    async getKey({ keyId, key = "" }, { management, note }) {
      const stored = await (keyId === undefined
        ? management.read({ kind: "keyOfSecret", digest: sha256(key), nowMs: deps.clock.nowMs() })
        : management.read({ kind: "key", id: keyId }));
      const read = found("key", stored);
      note({ keyId: read.id });
      return toKey(read, deps);
    },

    async listKeys({ expiresBefore: expiresBeforeMs, limit, cursor, $typeName: _, ...filters }, context) {
      const listed = await page("keys", { limit, cursor }, context, { ...filters, expiresBeforeMs });
      return { keys: listed.items.map((key) => toKey(key, deps)), cursor: listed.cursor };
    },

    async updateKey(request, context) {
      return toKey(await update("key", request.keyId, [UpdateKeyRequestSchema, request], context, deps), deps);
    },

    updateRemaining(request, context) {
      return changeRemaining("key", request.keyId, [UpdateRemainingRequestSchema, request], context, deps);
    },

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
