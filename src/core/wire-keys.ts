import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  KeySchema,
  NamedLimitSchema,
  OwnerSchema,
  RateLimitSchema,
  Key as WireKey,
  NamedLimit as WireNamedLimit,
  Owner as WireOwner,
  RateLimit as WireRateLimit,
} from "../../gen/latchkey/core/v2/core_pb.js";
import type { JsonObject, Key, LastKnownBalance } from "../domain/key.ts";
import { limitsOfKey, limitsOfOwner, type NamedLimit, type NamedRateLimit } from "../domain/limits.ts";
import type { Owner } from "../domain/owner.ts";
import type { RateLimit } from "../domain/rate-limit.ts";
import type { RefillInterval } from "../domain/refill-calendar.ts";

/* Keys and owners as look-ups answer them over the internal streams. */

export function toWireKey(key: Key): MessageInitShape<typeof KeySchema> {
  const { id, apiId, ownerId, name, meta, enabled, expiresAtMs, rateLimit, counter, secretExpiresAtMs } = key;
  const { permissions = [], ipRanges = [], limits = [], costMax } = key;
  const text = JSON.stringify(meta);
  return {
    id,
    apiId,
    ownerId,
    name,
    metaJson: text === "{}" ? "" : text,
    enabled,
    expiresAtMs,
    rateLimit: rateLimit && toWireRateLimit(rateLimit),
    remaining: counter?.remaining,
    refillInterval: counter?.refillInterval,
    secretExpiresAtMs,
    permissions: [...permissions],
    ipRanges: [...ipRanges],
    limits: limits.map(toWireLimit),
    costMax,
    hasOwnerRecord: key.hasOwnerRecord,
  };
}

/** As a coordinator has sent it: it is believed. Throws a `SyntaxError` for metadata that is not JSON. */
export function fromWireKey(key: WireKey): Key {
  const { id, apiId, ownerId, name, metaJson, enabled, expiresAtMs, rateLimit, remaining, secretExpiresAtMs } = key;
  return {
    id,
    apiId,
    ownerId,
    name,
    meta: metaJson === "" ? {} : (JSON.parse(metaJson) as JsonObject),
    enabled,
    expiresAtMs,
    rateLimit: rateLimit && fromWireRateLimit(rateLimit),
    counter: fromWireBalance(remaining, key.refillInterval),
    secretExpiresAtMs,
    permissions: key.permissions.length === 0 ? undefined : key.permissions,
    ipRanges: key.ipRanges.length === 0 ? undefined : key.ipRanges,
    limits: key.limits.length === 0 ? undefined : limitsOfKey(id, key.limits.map(fromWireLimit)),
    costMax: key.costMax,
    hasOwnerRecord: key.hasOwnerRecord,
  };
}

export function toWireOwner({ id, enabled, apiIds, limits, counter }: Owner): MessageInitShape<typeof OwnerSchema> {
  return {
    id,
    enabled,
    isLimited: apiIds !== undefined,
    apiIds: [...(apiIds ?? [])],
    limits: limits?.map(toWireLimit) ?? [],
    remaining: counter?.remaining,
    refillInterval: counter?.refillInterval,
  };
}

/** As a coordinator has sent it: it is believed. */
export function fromWireOwner(owner: WireOwner): Owner {
  const { id, enabled, isLimited, apiIds, limits, remaining, refillInterval } = owner;
  return {
    id,
    enabled,
    apiIds: isLimited ? apiIds : undefined,
    limits: limits.length === 0 ? undefined : limitsOfOwner(id, limits.map(fromWireLimit)),
    counter: fromWireBalance(remaining, refillInterval),
  };
}

function fromWireBalance(remaining: number | undefined, interval: string | undefined): LastKnownBalance | undefined {
  return remaining === undefined ? undefined : { remaining, refillInterval: interval as RefillInterval | undefined };
}

function toWireLimit({ name, rule }: NamedLimit): MessageInitShape<typeof NamedLimitSchema> {
  return { name, rule: toWireRateLimit(rule) };
}

function fromWireLimit({ name, rule }: WireNamedLimit): NamedRateLimit {
  return { name, rule: fromWireRateLimit(rule as WireRateLimit) };
}

function toWireRateLimit({ mode, limit, durationMs }: RateLimit): MessageInitShape<typeof RateLimitSchema> {
  return { strict: mode === "strict", limit, durationMs };
}

function fromWireRateLimit({ strict, limit, durationMs }: WireRateLimit): RateLimit {
  return { mode: strict ? "strict" : "local", limit, durationMs };
}
