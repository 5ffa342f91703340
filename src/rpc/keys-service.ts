import type { JsonObject, MessageInitShape } from "@bufbuild/protobuf";
import type { KeySchema, Ratelimit, Refill, VerifyKeyResponseSchema } from "../../gen/latchkey/v1/keys_pb.js";
import { KeysService, UpdateRemainingRequestSchema } from "../../gen/latchkey/v1/keys_pb.js";
import type { Ambient } from "../ambient/ambient.ts";
import type { StoredKey } from "../domain/key.ts";
import { andThen } from "../domain/maybe-promise.ts";
import type { RateLimit } from "../domain/rate-limit.ts";
import { nextBoundaryMs } from "../domain/refill-calendar.ts";
import { Secret } from "../domain/secret.ts";
import type { RefillRule, Refill as StoredRefill } from "../domain/usage.ts";
import type { Verdict } from "../domain/verification.ts";
import { type CreateKeyDeps, createCreateKey } from "../usecases/create-key.ts";
import { deleteKey } from "../usecases/delete-key.ts";
import { getKey } from "../usecases/get-key.ts";
import type { IdempotencyKey } from "../usecases/idempotency.ts";
import { type CounterOp, updateRemaining } from "../usecases/update-remaining.ts";
import { createVerifyKey, type VerifyKeyDeps } from "../usecases/verify-key.ts";
import { ApiError } from "./api-error.ts";
import { type CallContext, type Endpoint, headerOf } from "./call.ts";
import { checkMeta } from "./check-meta.ts";
import { changesOf } from "./decoding/update-fields.ts";
import { createEndpoints } from "./endpoints.ts";
import { InvalidRequest } from "./invalid-request.ts";

/** What the service and its use cases need. */
export type KeysServiceDeps = Pick<Ambient, "log" | "metrics"> & CreateKeyDeps & VerifyKeyDeps;

/** The methods of KeysService. Each turns its message into a call of a use case, and the result into a message. */
export function createKeysEndpoints(deps: KeysServiceDeps): Endpoint[] {
  const { metrics, log } = deps;
  const createKey = createCreateKey(deps);
  const verifyKey = createVerifyKey(deps);

  return createEndpoints(KeysService, {
    async createKey(request, context) {
      const created = await createKey(
        context.caller.management,
        {
          apiId: request.apiId,
          prefix: request.prefix,
          byteLength: request.byteLength,
          ownerId: request.ownerId,
          name: request.name,
          meta: checkMeta(request.meta ?? {}),
          enabled: request.enabled ?? true,
          expiresAtMs: request.expires,
          remaining: request.remaining,
          refill: request.refill && toRefillRule(request.refill),
          rateLimit: request.ratelimit && toRateLimit(request.ratelimit),
        },
        idempotencyKeyOf(context),
      );
      log.info("key created", { requestId: context.call.requestId, keyId: created.keyId });
      return created;
    },

    verifyKey(request, { call }) {
      const answer = (verdict: Verdict) => {
        metrics.verified(verdict.code);
        return toResponse(verdict, call.requestId);
      };
      return andThen(verifyKey({ key: new Secret(request.key), apiId: request.apiId }), answer);
    },

    async getKey({ keyId, key = "" }, { caller }) {
      const found = await getKey(caller.management, keyId === undefined ? { key: new Secret(key) } : { keyId });
      if (found === undefined) throw noSuchKey();
      return toKey(found);
    },

    async updateRemaining(request, { call: { requestId }, caller }) {
      const { keyId } = request;
      const op = request.op as CounterOp;
      const value = changesOf(UpdateRemainingRequestSchema, request).value ?? undefined;
      if (value === undefined && op !== "set") throw badField("value", "can be null with set only");
      const updated = await updateRemaining(caller.management, { keyId, op, value }, deps);
      if (updated === undefined) throw noSuchKey();
      log.info("key changed", { requestId, keyId, changed: "remaining" });
      return updated;
    },

    async deleteKey(request, { call: { requestId }, caller }) {
      if (!(await deleteKey(caller.management, request.keyId))) throw noSuchKey();
      log.info("key deleted", { requestId, keyId: request.keyId });
      return {};
    },
  });
}

function toRefillRule({ interval, amount, carryOver }: Refill): RefillRule {
  // The message's rules allow nothing else.
  return { interval: interval as RefillRule["interval"], amount, carryOver };
}

function toRateLimit({ async = true, limit, duration }: Ratelimit): RateLimit {
  return { mode: async ? "local" : "strict", limit, durationMs: duration };
}

function idempotencyKeyOf({ call, caller: { rootKey } }: CallContext): IdempotencyKey | undefined {
  const value = headerOf(call.headers, "idempotency-key");
  if (value === undefined || rootKey === undefined) return undefined;
  if (!/^[\x21-\x7e]{1,255}$/.test(value)) {
    throw badField("Idempotency-Key", "must be 1 to 255 visible ASCII characters");
  }
  return { rootKey, value: new Secret(value) };
}

function toResponse(verdict: Verdict, requestId: string): MessageInitShape<typeof VerifyKeyResponseSchema> {
  const valid = verdict.code === "VALID";
  if (!("key" in verdict)) return { valid, code: verdict.code, meta: {}, requestId };
  const { key, remaining, rateLimit, code } = verdict;
  return {
    keyId: key.id,
    valid,
    code,
    meta: key.meta as JsonObject,
    remaining,
    ownerId: key.ownerId,
    name: key.name,
    expires: key.expiresAtMs,
    ratelimit: rateLimit && {
      limit: rateLimit.limit,
      remaining: rateLimit.remaining,
      reset: rateLimit.resetMs,
    },
    requestId,
  };
}

/** A key as it is read. */
function toKey(key: StoredKey): MessageInitShape<typeof KeySchema> {
  const { id: keyId, apiId, start, ownerId, name, enabled, version, counter, rateLimit } = key;
  return {
    keyId,
    start,
    apiId,
    ownerId,
    name,
    meta: key.meta as JsonObject,
    enabled,
    createdAt: key.createdAtMs,
    updatedAt: key.updatedAtMs,
    expires: key.expiresAtMs,
    remaining: counter?.remaining,
    refill: counter?.refill && toRefillState(counter.refill),
    ratelimit: rateLimit && toRatelimit(rateLimit),
    secrets: [{ start, createdAt: key.createdAtMs }],
    version,
  };
}

function toRefillState({ interval, amount, carryOver, refilledThroughMs }: StoredRefill) {
  return { interval, amount, carryOver, nextRefillAt: nextBoundaryMs(interval, refilledThroughMs) };
}

function toRatelimit({ mode, limit, durationMs }: RateLimit) {
  return { async: mode === "local", limit, duration: durationMs };
}

function noSuchKey(): ApiError {
  return new ApiError("NOT_FOUND", "there is no such key");
}

function badField(path: string, message: string): InvalidRequest {
  return new InvalidRequest([{ path, message }]);
}
