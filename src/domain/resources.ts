import type { Fields } from "./fields.ts";
import { costMaxMax } from "./limits.ts";

/*
 * The fields of each stored resource. A new field is a line here, one in its messages, one in a migration and, if a
 * verification needs it, one in `core.proto`; `npm run generate` then brings the generated code up to date.
 */

export const keyFields = {
  ownerId: { kind: "text", column: "owner_id", verified: "common" },
  name: { kind: "text", column: "name", verified: "common" },
  /** Such as `production`. It decides nothing. */
  environment: { kind: "text", column: "environment", verified: "rare", isFilter: true, isShared: true },
  meta: { kind: "json", column: "meta", byDefault: {}, verified: "common" },
  enabled: { kind: "flag", column: "enabled", byDefault: true, verified: "common", isFilter: true },
  expiresAtMs: { kind: "moment", column: "expires_at_ms", publicName: "expires", verified: "common" },
  rateLimit: { kind: "rateLimit", column: "ratelimit", publicName: "ratelimit", verified: "common" },
  rateLimits: { kind: "rateLimits", column: "ratelimits", publicName: "ratelimits", verified: "rare" },
  refill: { kind: "refill" },
  /** The largest cost that a verification can have; absent: any. */
  costMax: { kind: "whole", column: "cost_max", max: costMaxMax, verified: "rare" },
  /** What its holder may do; absent: nothing that a verification asks for. */
  permissions: { kind: "texts", column: "permissions", verified: "rare" },
  /** The addresses that it can be used from; absent: all. */
  ipAllow: { kind: "addresses", column: "ip_allow", verified: "rare" },
} as const satisfies Fields;

export const ownerFields = {
  meta: { kind: "json", column: "meta", byDefault: {} },
  /** False: none of its keys can be used. */
  enabled: { kind: "flag", column: "enabled", byDefault: true, verified: "common" },
  /** The APIs of the keys that it concerns; absent: all. */
  apiIds: { kind: "texts", column: "api_ids", verified: "common" },
  refill: { kind: "refill" },
  rateLimits: { kind: "rateLimits", column: "ratelimits", publicName: "ratelimits", verified: "common" },
} as const satisfies Fields;

export const apiFields = {
  name: { kind: "text", column: "name" },
  /** Whether its keys can only name owners that have a record. */
  ownersRequired: { kind: "flag", column: "owners_required", byDefault: false },
  /** What a new key takes over where its request is silent. */
  defaults: { kind: "defaults", column: "defaults", byDefault: {} },
} as const satisfies Fields;

export const rootKeyFields = {
  name: { kind: "text", column: "name" },
  /** Never none: whoever makes or changes it sees to that. */
  permissions: { kind: "texts", column: "permissions", byDefault: [] },
  /** The APIs that it is limited to; absent: all. */
  apiIds: { kind: "texts", column: "api_ids" },
  expiresAtMs: { kind: "moment", column: "expires_at_ms", publicName: "expires" },
} as const satisfies Fields;

export type KeyFields = typeof keyFields;
export type OwnerFields = typeof ownerFields;
export type ApiFields = typeof apiFields;
export type RootKeyFields = typeof rootKeyFields;

export const resources = { key: keyFields, owner: ownerFields, api: apiFields, rootKey: rootKeyFields } as const;

export type Resource = keyof typeof resources;
