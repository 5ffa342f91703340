import type { JsonObject, MessageInitShape } from "@bufbuild/protobuf";
import type {
  CreateKeyRequest,
  ExplainKeyResponseSchema,
  KeyCheckSchema,
  KeySchema,
  KeyToImport as KeyToImportMessage,
  RefusalReasonSchema,
  VerifyKeyRequest,
  VerifyKeyResponseSchema,
} from "../../gen/latchkey/v1/keys_pb.js";
import type { Ambient } from "../ambient/ambient.ts";
import type { Costs } from "../domain/costs.ts";
import { isExpired } from "../domain/expiry.ts";
import type { Explanation } from "../domain/explanation.ts";
import type { KeyProperties, StoredKey, StoredSecret } from "../domain/key.ts";
import type { RateLimit, RateLimitState } from "../domain/rate-limit.ts";
import {
  type Check,
  type CounterCheck,
  type LimitCheck,
  phraseCheck,
  phraseRefusal,
  type RefusalReason,
} from "../domain/refusal-reason.ts";
import { keyFields } from "../domain/resources.ts";
import type { KeyVerdict, NamedLimitState, Verdict } from "../domain/verification.ts";
import { propertiesIn, shownResource } from "./field-messages.ts";
import { InvalidRequest } from "./invalid-request.ts";

/* Keys and verifications: as messages, and as the service knows them. */

/** What a new key and one that is imported have in common. */
export function toProperties(key: CreateKeyRequest | KeyToImportMessage): KeyProperties {
  return { ...propertiesIn(keyFields, key), remaining: key.remaining };
}

/** The outcome of a verification. */
export function toVerification(verdict: Verdict, requestId: string): MessageInitShape<typeof VerifyKeyResponseSchema> {
  const valid = verdict.code === "VALID";
  const reason = verdict.reason && toReason(verdict.reason);
  if (!("key" in verdict)) return { valid, code: verdict.code, meta: {}, requestId, reason };
  const { key, remaining, limits, code } = verdict;
  const { rateLimit, rateLimits } = limits;
  return {
    keyId: key.id,
    valid,
    code,
    meta: key.meta as JsonObject,
    remaining,
    ownerId: key.ownerId,
    name: key.name,
    environment: key.environment,
    expires: key.expiresAtMs,
    ratelimit: rateLimit && key.rateLimit && toShownLimit(rateLimit, key.rateLimit),
    requestId,
    reason,
    ratelimits: rateLimits?.map(toNamedState) ?? noLimits,
    owner: verdict.owner && toOwnerState(verdict),
  };
}

const noLimits: never[] = [];

/** Undefined for an owner that shares nothing. */
function toOwnerState({ ownerRemaining: remaining, limits: { ownerRateLimits } }: KeyVerdict) {
  if (remaining === undefined && ownerRateLimits === undefined) return undefined;
  return { remaining, ratelimits: ownerRateLimits?.map(toNamedState) ?? noLimits };
}

function toNamedState({ name, durationMs: duration, state }: NamedLimitState) {
  return { name, limit: state.limit, remaining: state.remaining, reset: state.resetMs, duration };
}

function toShownLimit({ limit, remaining, resetMs }: RateLimitState, { durationMs }: RateLimit) {
  return { limit, remaining, reset: resetMs, duration: durationMs };
}

function toRatelimitState({ limit, remaining, resetMs }: RateLimitState) {
  return { limit, remaining, reset: resetMs };
}

/** Undefined for a request that says nothing of costs. Throws `InvalidRequest`. */
export function toCosts({
  remaining,
  ratelimit,
  ratelimits,
}: Pick<VerifyKeyRequest, "remaining" | "ratelimit" | "ratelimits">): Costs | undefined {
  if (remaining === undefined && ratelimit === undefined && ratelimits.length === 0) return undefined;
  if (ratelimits.length > 1 && new Set(ratelimits.map(({ name }) => name)).size < ratelimits.length)
    throw new InvalidRequest([{ path: "ratelimits", message: "must not have a name twice" }]);
  return { counter: remaining?.cost ?? 1, unnamed: ratelimit?.cost ?? 1, named: ratelimits };
}

/** What the reasons have, each some of it. */
type ReasonFields = Pick<RefusalReason, "check"> & {
  readonly [Name in "of" | "name" | "missing"]?: string | undefined;
} & { readonly nextRefillMs?: number | undefined };

function toReason(reason: RefusalReason): MessageInitShape<typeof RefusalReasonSchema> {
  const { check, of, name, missing, nextRefillMs: nextRefillAt }: ReasonFields = reason;
  return { check, of, name, missing, message: phraseRefusal(reason), nextRefillAt };
}

export function toExplanation({
  code,
  checks,
  reason,
}: Explanation): MessageInitShape<typeof ExplainKeyResponseSchema> {
  return { code, checks: checks.map(toCheck), reason: reason && toReason(reason) };
}

function toCheck(check: Check): MessageInitShape<typeof KeyCheckSchema> {
  const { check: name, of, refusal } = check;
  const common = { name, passed: refusal === undefined, of, message: phraseCheck(check) };
  switch (check.check) {
    case "limit":
      return { ...common, ratelimit: { ...toRatelimitState(check.state), ...toCheckedLimit(check) } };
    case "counter":
      return { ...common, counter: toCheckedCounter(check) };
    default:
      return refusal?.check === "permissions" ? { ...common, missing: refusal.missing } : common;
  }
}

function toCheckedLimit({ name, cost, mode }: LimitCheck) {
  return { name, cost, async: mode === "local" };
}

function toCheckedCounter({ remaining, cost, nextRefillMs: nextRefillAt }: CounterCheck) {
  return { remaining, cost, nextRefillAt };
}

/** A key as it is read. A secret that has ended is left out, also while its row is still there. */
export function toKey(key: StoredKey, { clock }: Pick<Ambient, "clock">): MessageInitShape<typeof KeySchema> {
  const nowMs = clock.nowMs();
  const { id: keyId, apiId, start, counter, secrets, ...stored } = key;
  return {
    ...shownResource(keyFields, { ...stored, id: keyId, refill: counter?.refill }),
    keyId,
    apiId,
    start,
    remaining: counter?.remaining,
    secrets: secrets.filter(({ expiresAtMs }) => !isExpired(expiresAtMs, nowMs)).map(toSecret),
  };
}

function toSecret({ start, createdAtMs, expiresAtMs }: StoredSecret) {
  return { start, createdAt: createdAtMs, expires: expiresAtMs };
}
