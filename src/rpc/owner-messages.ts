import type { JsonObject, MessageInitShape } from "@bufbuild/protobuf";
import type { CreateOwnerRequest, OwnerSchema } from "../../gen/latchkey/v1/owners_pb.js";
import type { Updates } from "../../gen/latchkey/v1/updates.ts";
import type { NewOwner, StoredOwner } from "../domain/owner.ts";
import type { OwnerChangeParts } from "../domain/partial-changes.ts";
import { checkMeta } from "./check-meta.ts";
import {
  toNamedRateLimit,
  toNamedRateLimitPart,
  toNamedRatelimits,
  toRefillPart,
  toRefillRule,
  toRefillState,
  unlessEmpty,
} from "./key-messages.ts";

/* Owners: as messages, and as the service knows them. */

export function toNewOwner(owner: CreateOwnerRequest): NewOwner {
  const { ownerId: id, meta = {}, enabled = true, apiIds, remaining, refill, ratelimits } = owner;
  return {
    id,
    meta: checkMeta(meta),
    enabled,
    apiIds: unlessEmpty(apiIds),
    remaining,
    refill: refill && toRefillRule(refill),
    rateLimits: unlessEmpty(ratelimits)?.map(toNamedRateLimit),
  };
}

export function toOwnerChanges(changes: Updates["latchkey.v1.UpdateOwnerRequest"]): OwnerChangeParts {
  const { meta, enabled, apiIds, refill, ratelimits } = changes;
  return {
    meta: meta === undefined ? undefined : checkMeta(meta ?? {}),
    enabled,
    apiIds,
    refill: refill && toRefillPart(refill),
    rateLimits: ratelimits === null ? null : ratelimits?.map(toNamedRateLimitPart),
  };
}

/** An owner as it is read. */
export function toOwner(owner: StoredOwner): MessageInitShape<typeof OwnerSchema> {
  const { id: ownerId, enabled, counter, version } = owner;
  return {
    ownerId,
    meta: owner.meta as JsonObject,
    enabled,
    apiIds: [...(owner.apiIds ?? [])],
    remaining: counter?.remaining,
    refill: counter?.refill && toRefillState(counter.refill),
    ratelimits: toNamedRatelimits(owner.rateLimits),
    createdAt: owner.createdAtMs,
    updatedAt: owner.updatedAtMs,
    version,
  };
}
