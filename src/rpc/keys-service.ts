import {
  type KeysService,
  UpdateKeyRequestSchema,
  UpdateRemainingRequestSchema,
} from "../../gen/latchkey/v1/keys_pb.js";
import { Secret } from "../domain/secret.ts";
import { type CreateKeyDeps, createCreateKey } from "../usecases/create-key.ts";
import { deleteKey } from "../usecases/delete-key.ts";
import { getKey } from "../usecases/get-key.ts";
import { importKeys } from "../usecases/import-keys.ts";
import { listKeys } from "../usecases/list-keys.ts";
import { rerollKey } from "../usecases/reroll-key.ts";
import { updateKey } from "../usecases/update-key.ts";
import { updateRemaining } from "../usecases/update-remaining.ts";
import { ApiError } from "./api-error.ts";
import { changedFields, changesOf } from "./decoding/update-fields.ts";
import type { ManagementHandlers } from "./endpoints.ts";
import { idempotencyKeyOf } from "./idempotency-key.ts";
import { toCounterChange, toFieldChanges, toKey, toKeyToImport, toProperties } from "./key-messages.ts";
import { fromCursor, toCursor } from "./page-cursor.ts";

/** The methods of KeysService that manage keys. Each turns its message into a call of a use case, and the result into a message. */
export function keysHandlers(deps: CreateKeyDeps): ManagementHandlers<typeof KeysService> {
  const createKey = createCreateKey(deps);
  return {
    async createKey(request, context) {
      const created = await createKey(
        context.management,
        {
          apiId: request.apiId,
          prefix: request.prefix,
          byteLength: request.byteLength,
          useDefaults: request.useDefaults ?? true,
          ...toProperties(request),
        },
        idempotencyKeyOf(context, request.apiId),
      );
      context.note({ keyId: created.keyId });
      return created;
    },

    async getKey({ keyId, key = "" }, { management, note }) {
      const by = keyId === undefined ? { key: new Secret(key) } : { keyId };
      const found = await getKey(management, by, deps);
      if (found === undefined) throw noSuchKey();
      note({ keyId: found.id });
      return toKey(found, deps);
    },

    async listKeys({ apiId, ownerId, enabled, expiresBefore, search, limit, cursor }, { management }) {
      const after = cursor === undefined ? undefined : fromCursor("keys", cursor);
      const filters = { apiId, ownerId, enabled, expiresBeforeMs: expiresBefore, search };
      const page = await listKeys(management, { ...filters, limit, after });
      return { keys: page.keys.map((key) => toKey(key, deps)), cursor: page.cursor && toCursor("keys", page.cursor) };
    },

    async updateKey(request, context) {
      const { keyId, ifVersion } = request;
      const changes = toFieldChanges(changesOf(UpdateKeyRequestSchema, request));
      const { management } = context;
      const updated = await updateKey(management, { keyId, ifVersion, changes }, idempotencyKeyOf(context), deps);
      if (updated === undefined) throw noSuchKey();
      context.note({ keyId, changed: changedFields(request) });
      return toKey(updated, deps);
    },

    async updateRemaining(request, context) {
      const { keyId } = request;
      const change = toCounterChange(request.op, changesOf(UpdateRemainingRequestSchema, request));
      const { management } = context;
      const updated = await updateRemaining(management, { keyId, ...change }, idempotencyKeyOf(context), deps);
      if (updated === undefined) throw noSuchKey();
      context.note({ keyId, changed: "remaining" });
      return updated;
    },

    async rerollKey({ keyId, overlap: overlapMs = 0, byteLength }, context) {
      const { management } = context;
      const idempotencyKey = idempotencyKeyOf(context);
      const rerolled = await rerollKey(management, { keyId, overlapMs, byteLength }, idempotencyKey, deps);
      if (rerolled === undefined) throw noSuchKey();
      context.note({ keyId, changed: "secrets" });
      return rerolled;
    },

    async importKeys({ apiId, keys }, context) {
      const request = { apiId, keys: keys.map(toKeyToImport) };
      const results = await importKeys(context.management, request, idempotencyKeyOf(context, apiId), deps);
      const imported = results.filter((result) => "keyId" in result).length;
      context.note({ imported, refused: results.length - imported });
      return { results: [...results] };
    },

    async deleteKey({ keyId }, context) {
      const existed = await deleteKey(context.management, keyId, idempotencyKeyOf(context), deps);
      if (!existed) throw noSuchKey();
      context.note({ keyId });
      return {};
    },
  };
}

export function noSuchKey(): ApiError {
  return new ApiError("NOT_FOUND", "there is no such key");
}
