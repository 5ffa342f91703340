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
import type { Costs } from "../domain/costs.ts";
import { isExpired } from "../domain/expiry.ts";
import type { Explanation } from "../domain/explanation.ts";
import type { KeyProperties, StoredKey } from "../domain/key.ts";
import type { RateLimit, RateLimitState } from "../domain/rate-limit.ts";
import { phraseCheck, phraseRefusal, type RefusalReason, type VerificationCheck } from "../domain/refusal-reason.ts";
import { keyFields } from "../domain/resources.ts";
import type { KeyVerdict, NamedLimitState, Verdict } from "../domain/verification.ts";
import { propertiesIn } from "./field-messages.ts";
import { invalid } from "./invalid-request.ts";

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
    ratelimit: rateLimit && key.rateLimit && toLimitState(rateLimit, key.rateLimit),
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

function toLimitState({ limit, remaining, resetMs }: RateLimitState, { durationMs }: RateLimit) {
  return { limit, remaining, reset: resetMs, duration: durationMs };
}

function toRatelimitState({ limit, remaining, resetMs }: RateLimitState) {
  return { limit, remaining, reset: resetMs };
}

/** Undefined for a request that says nothing of costs. Throws `InvalidRequest`. */
export function toCosts(asked: Pick<VerifyKeyRequest, "remaining" | "ratelimit" | "ratelimits">): Costs | undefined {
  const { remaining, ratelimit, ratelimits } = asked;
  if (remaining === undefined && ratelimit === undefined && ratelimits.length === 0) return undefined;
  if (ratelimits.length > 1 && new Set(ratelimits.map(({ name }) => name)).size < ratelimits.length)
    throw invalid("ratelimits", "must not have a name twice");
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

export function toExplanation(explanation: Explanation): MessageInitShape<typeof ExplainKeyResponseSchema> {
  const { code, checks, reason } = explanation;
  return { code, checks: checks.map(toCheck), reason: reason && toReason(reason) };
}

function toCheck(check: VerificationCheck): MessageInitShape<typeof KeyCheckSchema> {
  const { check: name, of, refusal } = check;
  const common = { name, passed: refusal === undefined, of, message: phraseCheck(check) };
  if (check.check === "limit") {
    const { name, cost, mode, state } = check;
    return { ...common, ratelimit: { ...toRatelimitState(state), name, cost, async: mode === "local" } };
  }
  if (check.check === "counter") {
    const { remaining, cost, nextRefillMs: nextRefillAt } = check;
    return { ...common, counter: { remaining, cost, nextRefillAt } };
  }
  return refusal?.check === "permissions" ? { ...common, missing: refusal.missing } : common;
}

/** A key's secrets as they are read. One that has ended is left out, also while its row is still there. */
export function secretsOf({ secrets }: StoredKey, nowMs: number): MessageInitShape<typeof KeySchema>["secrets"] {
  const open = secrets.filter(({ expiresAtMs }) => !isExpired(expiresAtMs, nowMs));
  return open.map(({ start, createdAtMs, expiresAtMs }) => ({ start, createdAt: createdAtMs, expires: expiresAtMs }));
}
