import type { JsonObject, MessageInitShape } from "@bufbuild/protobuf";
import type {
  CreateKeyRequest,
  ExplainKeyResponseSchema,
  KeyCheckSchema,
  KeySchema,
  KeyToImport as KeyToImportMessage,
  NamedRatelimit,
  Ratelimit,
  Refill,
  RefusalReasonSchema,
  VerifyKeyRequest,
  VerifyKeyResponseSchema,
} from "../../gen/latchkey/v1/keys_pb.js";
import type { NamedRatelimitUpdate, RatelimitUpdate, RefillUpdate, Updates } from "../../gen/latchkey/v1/updates.ts";
import type { Ambient } from "../ambient/ambient.ts";
import type { Costs } from "../domain/costs.ts";
import { isExpired } from "../domain/expiry.ts";
import type { Explanation } from "../domain/explanation.ts";
import type { StoredKey, StoredSecret } from "../domain/key.ts";
import type { NamedRateLimit } from "../domain/limits.ts";
import type { KeyChangeParts, NamedRateLimitPart, Part } from "../domain/partial-changes.ts";
import type { RateLimit, RateLimitState } from "../domain/rate-limit.ts";
import { nextBoundaryMs } from "../domain/refill-calendar.ts";
import {
  type Check,
  type CounterCheck,
  type LimitCheck,
  phraseCheck,
  phraseRefusal,
  type RefusalReason,
} from "../domain/refusal-reason.ts";
import type { RefillRule, Refill as StoredRefill } from "../domain/usage.ts";
import type { KeyVerdict, NamedLimitState, Verdict } from "../domain/verification.ts";
import type { KeyToImport } from "../usecases/import-keys.ts";
import type { CounterChange } from "../usecases/update-remaining.ts";
import { checkMeta } from "./check-meta.ts";
import { InvalidRequest } from "./invalid-request.ts";

/* Keys and their parts: as messages, and as the service knows them. */

export function toFieldChanges(changes: Updates["latchkey.v1.UpdateKeyRequest"]): KeyChangeParts {
  const { ownerId, name, meta, enabled, expires, ratelimit, ratelimits, refill, ...others } = changes;
  return {
    ownerId,
    name,
    meta: meta === undefined ? undefined : checkMeta(meta ?? {}),
    enabled,
    expiresAtMs: expires,
    rateLimit: ratelimit && toRateLimitPart(ratelimit),
    rateLimits: ratelimits === null ? null : ratelimits?.map(toNamedRateLimitPart),
    refill: refill && toRefillPart(refill),
    costMax: others.costMax,
    permissions: others.permissions,
    ipAllow: others.ipAllow,
  };
}

/** Of a key or an owner. Throws `InvalidRequest`. */
export function toCounterChange(op: string, { value }: { readonly value?: number | null | undefined }): CounterChange {
  if (value === null && op !== "set") {
    throw new InvalidRequest([{ path: "value", message: "can be null with set only" }]);
  }
  // The message's rules allow no other operation.
  return { op: op as CounterChange["op"], value: value ?? undefined };
}

export function toRefillRule({ interval, amount, carryOver }: Refill): RefillRule {
  // The message's rules allow nothing else.
  return { interval: interval as RefillRule["interval"], amount, carryOver };
}

export function toRefillPart({ interval, amount, carryOver }: RefillUpdate): Part<RefillRule> {
  return { interval: interval as RefillRule["interval"] | undefined, amount, carryOver };
}

export function toRateLimitPart({ async, limit, duration }: RatelimitUpdate): Part<RateLimit> {
  return { mode: async === undefined ? undefined : modeOf(async), limit, durationMs: duration };
}

export function toNamedRateLimitPart({ name, ...rule }: NamedRatelimitUpdate): NamedRateLimitPart {
  return { name, rule: toRateLimitPart(rule) };
}

function modeOf(async: boolean): RateLimit["mode"] {
  return async ? "local" : "strict";
}

export function toRateLimit({ async = true, limit, duration }: Omit<Ratelimit, "$typeName">): RateLimit {
  return { mode: modeOf(async), limit, durationMs: duration };
}

export function toNamedRateLimit({ name, ...rule }: NamedRatelimit): NamedRateLimit {
  return { name, rule: toRateLimit(rule) };
}

export function toKeyToImport(key: KeyToImportMessage): KeyToImport {
  return { digest: key.digest, start: key.start ?? "", ...toProperties(key) };
}

/** What a new key and one that is imported have in common. */
export function toProperties(key: CreateKeyRequest | KeyToImportMessage) {
  return {
    ownerId: key.ownerId,
    name: key.name,
    meta: checkMeta(key.meta ?? {}),
    enabled: key.enabled ?? true,
    expiresAtMs: key.expires,
    remaining: key.remaining,
    refill: key.refill && toRefillRule(key.refill),
    rateLimit: key.ratelimit && toRateLimit(key.ratelimit),
    rateLimits: unlessEmpty(key.ratelimits)?.map(toNamedRateLimit),
    costMax: key.costMax,
    permissions: unlessEmpty(key.permissions),
    ipAllow: unlessEmpty(key.ipAllow),
  };
}

/** A list that is absent is empty in a message. */
export function unlessEmpty<One>(list: readonly One[]): readonly One[] | undefined {
  return list.length === 0 ? undefined : list;
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
    ratelimits: toNamedRatelimits(key.rateLimits),
    costMax: key.costMax,
    permissions: [...(key.permissions ?? [])],
    ipAllow: [...(key.ipAllow ?? [])],
    secrets: key.secrets.filter(({ expiresAtMs }) => !isExpired(expiresAtMs, nowMs)).map(toSecret),
    version,
  };
}

function toSecret({ start, createdAtMs, expiresAtMs }: StoredSecret) {
  return { start, createdAt: createdAtMs, expires: expiresAtMs };
}

export function toRefillState({ interval, amount, carryOver, refilledThroughMs }: StoredRefill) {
  return { interval, amount, carryOver, nextRefillAt: nextBoundaryMs(interval, refilledThroughMs) };
}

/** As they are read. */
export function toNamedRatelimits(limits: readonly NamedRateLimit[] | undefined) {
  return limits?.map(({ name, rule }) => ({ name, ...toRatelimit(rule) })) ?? [];
}

/** As it is read. */
export function toRatelimit({ mode, limit, durationMs }: RateLimit) {
  return { async: mode === "local", limit, duration: durationMs };
}
