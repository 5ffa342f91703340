// Generated from src/domain/resources.ts. Do not edit.
import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  fromWireBalance,
  fromWireJson,
  fromWireLimits,
  fromWireList,
  fromWireRateLimit,
  toWireJson,
  toWireLimits,
  toWireList,
  toWireRateLimit,
} from "../../../src/core/wire-fields.ts";
import type { Key } from "../../../src/domain/key.ts";
import { limitsOfKey, limitsOfOwner } from "../../../src/domain/limits.ts";
import type { Owner } from "../../../src/domain/owner.ts";
import type { KeySchema, OwnerSchema, Key as WireKey, Owner as WireOwner } from "../../latchkey/core/v2/core_pb.js";

/* Keys and owners as look-ups answer them over the internal streams. What a coordinator has sent is believed. */

export function toWireKey(value: Key): MessageInitShape<typeof KeySchema> {
  return {
    id: value.id,
    apiId: value.apiId,
    ownerId: value.ownerId,
    name: value.name,
    environment: value.environment,
    metaJson: toWireJson(value.meta),
    enabled: value.enabled,
    expiresAtMs: value.expiresAtMs,
    rateLimit: value.rateLimit && toWireRateLimit(value.rateLimit),
    rateLimits: toWireLimits(value.rateLimits),
    costMax: value.costMax,
    permissions: toWireList(value.permissions),
    ipAllow: toWireList(value.ipAllow),
    remaining: value.counter?.remaining,
    refillInterval: value.counter?.refillInterval,
    hasOwnerRecord: value.hasOwnerRecord,
    secretExpiresAtMs: value.secretExpiresAtMs,
  };
}

/** Throws a `SyntaxError` for metadata that is not JSON. */
export function fromWireKey(wire: WireKey): Key {
  return {
    id: wire.id,
    apiId: wire.apiId,
    ownerId: wire.ownerId,
    name: wire.name,
    environment: wire.environment,
    meta: fromWireJson(wire.metaJson),
    enabled: wire.enabled,
    expiresAtMs: wire.expiresAtMs,
    rateLimit: wire.rateLimit && fromWireRateLimit(wire.rateLimit),
    rateLimits: fromWireLimits(wire.rateLimits, wire.id, limitsOfKey),
    costMax: wire.costMax,
    permissions: fromWireList(wire.permissions),
    ipAllow: fromWireList(wire.ipAllow),
    counter: fromWireBalance(wire),
    hasOwnerRecord: wire.hasOwnerRecord,
    secretExpiresAtMs: wire.secretExpiresAtMs,
  };
}

export function toWireOwner(value: Owner): MessageInitShape<typeof OwnerSchema> {
  return {
    id: value.id,
    enabled: value.enabled,
    apiIds: toWireList(value.apiIds),
    rateLimits: toWireLimits(value.rateLimits),
    remaining: value.counter?.remaining,
    refillInterval: value.counter?.refillInterval,
  };
}

export function fromWireOwner(wire: WireOwner): Owner {
  return {
    id: wire.id,
    enabled: wire.enabled,
    apiIds: fromWireList(wire.apiIds),
    rateLimits: fromWireLimits(wire.rateLimits, wire.id, limitsOfOwner),
    counter: fromWireBalance(wire),
  };
}
