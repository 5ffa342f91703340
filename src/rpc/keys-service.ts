import { KeysService, UpdateKeyRequestSchema, UpdateRemainingRequestSchema } from "../../gen/latchkey/v1/keys_pb.js";
import type { Ambient } from "../ambient/ambient.ts";
import { type IpAddress, parseIpAddress } from "../domain/ip-allow.ts";
import { andThen } from "../domain/maybe-promise.ts";
import { createQueryParser, type PermissionQuery, QuerySyntaxError } from "../domain/permission-query.ts";
import { Secret } from "../domain/secret.ts";
import type { Verdict } from "../domain/verification.ts";
import { type CreateKeyDeps, createCreateKey } from "../usecases/create-key.ts";
import { deleteKey } from "../usecases/delete-key.ts";
import { type ExplainKeyDeps, explainKey } from "../usecases/explain-key.ts";
import { getKey } from "../usecases/get-key.ts";
import { importKeys } from "../usecases/import-keys.ts";
import { listKeys } from "../usecases/list-keys.ts";
import { rerollKey } from "../usecases/reroll-key.ts";
import { updateKey } from "../usecases/update-key.ts";
import { updateRemaining } from "../usecases/update-remaining.ts";
import { createVerifyKey, type VerifyKeyDeps } from "../usecases/verify-key.ts";
import { ApiError } from "./api-error.ts";
import type { Endpoint } from "./call.ts";
import { changedFields, changesOf } from "./decoding/update-fields.ts";
import { createEndpoints } from "./endpoints.ts";
import { idempotencyKeyOf } from "./idempotency-key.ts";
import { InvalidRequest } from "./invalid-request.ts";
import {
  toCosts,
  toCounterChange,
  toExplanation,
  toFieldChanges,
  toKey,
  toKeyToImport,
  toProperties,
  toVerification,
} from "./key-messages.ts";
import { fromCursor, toCursor } from "./page-cursor.ts";

/** What the service and its use cases need. */
export type KeysServiceDeps = Pick<Ambient, "metrics"> & CreateKeyDeps & VerifyKeyDeps & ExplainKeyDeps;

/** The methods of KeysService. Each turns its message into a call of a use case, and the result into a message. */
export function createKeysEndpoints(deps: KeysServiceDeps): Endpoint[] {
  const { metrics } = deps;
  const createKey = createCreateKey(deps);
  const verifyKey = createVerifyKey(deps);
  const parseQuery = createQueryParser();

  function readQuery(text: string | undefined): PermissionQuery | undefined {
    try {
      return text === undefined ? undefined : parseQuery(text);
    } catch (error) {
      throw error instanceof QuerySyntaxError ? badField("permissions", error.message) : error;
    }
  }

  return createEndpoints(KeysService, {
    async createKey(request, context) {
      const created = await createKey(
        context.caller.management,
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

    verifyKey(request, { call, caller: { apiIds } }) {
      const answer = (verdict: Verdict) => {
        metrics.verified(verdict.code);
        return toVerification(verdict, call.requestId);
      };
      const { apiId } = request;
      const permissions = readQuery(request.permissions);
      const ip = readAddress(request.ip);
      return andThen(
        verifyKey({ key: new Secret(request.key), apiId, apiIds, permissions, ip, costs: toCosts(request) }),
        answer,
      );
    },

    async explainKey(request, { caller, note }) {
      const { apiId, keyId, key = "" } = request;
      const by = keyId === undefined ? { key: new Secret(key) } : { keyId };
      const permissions = readQuery(request.permissions);
      const asked = { by, apiId, permissions, ip: readAddress(request.ip), costs: toCosts(request) };
      const explanation = await explainKey(caller.management, asked, deps);
      if (keyId !== undefined && explanation.code === "NOT_FOUND") throw noSuchKey();
      note({ keyId });
      return toExplanation(explanation);
    },

    async getKey({ keyId, key = "" }, { caller, note }) {
      const by = keyId === undefined ? { key: new Secret(key) } : { keyId };
      const found = await getKey(caller.management, by, deps);
      if (found === undefined) throw noSuchKey();
      note({ keyId: found.id });
      return toKey(found, deps);
    },

    async listKeys({ apiId, ownerId, enabled, expiresBefore, search, limit, cursor }, { caller }) {
      const after = cursor === undefined ? undefined : fromCursor("keys", cursor);
      const filters = { apiId, ownerId, enabled, expiresBeforeMs: expiresBefore, search };
      const page = await listKeys(caller.management, { ...filters, limit, after });
      return { keys: page.keys.map((key) => toKey(key, deps)), cursor: page.cursor && toCursor("keys", page.cursor) };
    },

    async updateKey(request, context) {
      const { keyId, ifVersion } = request;
      const changes = toFieldChanges(changesOf(UpdateKeyRequestSchema, request));
      const { management } = context.caller;
      const updated = await updateKey(management, { keyId, ifVersion, changes }, idempotencyKeyOf(context), deps);
      if (updated === undefined) throw noSuchKey();
      context.note({ keyId, changed: changedFields(request) });
      return toKey(updated, deps);
    },

    async updateRemaining(request, context) {
      const { keyId } = request;
      const change = toCounterChange(request.op, changesOf(UpdateRemainingRequestSchema, request));
      const { management } = context.caller;
      const updated = await updateRemaining(management, { keyId, ...change }, idempotencyKeyOf(context), deps);
      if (updated === undefined) throw noSuchKey();
      context.note({ keyId, changed: "remaining" });
      return updated;
    },

    async rerollKey({ keyId, overlap: overlapMs = 0, byteLength }, context) {
      const { management } = context.caller;
      const idempotencyKey = idempotencyKeyOf(context);
      const rerolled = await rerollKey(management, { keyId, overlapMs, byteLength }, idempotencyKey, deps);
      if (rerolled === undefined) throw noSuchKey();
      context.note({ keyId, changed: "secrets" });
      return rerolled;
    },

    async importKeys({ apiId, keys }, context) {
      const request = { apiId, keys: keys.map(toKeyToImport) };
      const results = await importKeys(context.caller.management, request, idempotencyKeyOf(context, apiId), deps);
      const imported = results.filter((result) => "keyId" in result).length;
      context.note({ imported, refused: results.length - imported });
      return { results: [...results] };
    },

    async deleteKey({ keyId }, context) {
      const existed = await deleteKey(context.caller.management, keyId, idempotencyKeyOf(context), deps);
      if (!existed) throw noSuchKey();
      context.note({ keyId });
      return {};
    },
  });
}

function noSuchKey(): ApiError {
  return new ApiError("NOT_FOUND", "there is no such key");
}

function readAddress(text: string | undefined): IpAddress | undefined {
  if (text === undefined) return undefined;
  const address = parseIpAddress(text);
  if (address === undefined) throw badField("ip", "must be an IP address, without a port");
  return address;
}

function badField(path: string, message: string): InvalidRequest {
  return new InvalidRequest([{ path, message }]);
}
