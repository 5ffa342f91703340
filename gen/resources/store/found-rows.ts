// Generated from src/domain/resources.ts. Do not edit.
import type { Key } from "../../../src/domain/key.ts";
import { limitsOfKey, limitsOfOwner } from "../../../src/domain/limits.ts";
import type { Owner } from "../../../src/domain/owner.ts";
import { read, readBalance, readRanges } from "../../../src/store/sql/read-columns.ts";

/** What is looked up of a key, in the order of its row; then come `has_owner_record` and `secret_expires_at_ms`. */
export const keyColumns = [
  "keys.id",
  "keys.api_id",
  "counters.remaining",
  "counters.refill_interval",
  "keys.owner_id",
  "keys.name",
  "keys.environment",
  "keys.meta",
  "keys.enabled",
  "keys.expires_at_ms",
  "keys.ratelimit_async",
  "keys.ratelimit_limit",
  "keys.ratelimit_duration_ms",
  "keys.ratelimits",
  "keys.cost_max",
  "keys.permissions",
  "keys.ip_allow",
] as const;

export type KeyRow = readonly [
  string,
  string,
  number | null,
  string | null,
  string | null,
  string | null,
  string | null,
  string,
  number,
  number | null,
  number | null,
  number | null,
  number | null,
  string | null,
  number | null,
  string | null,
  string | null,
  number | null,
  number | null,
];

/** Where the row has numbers. */
export const keyNumbers: readonly number[] = [2, 8, 9, 10, 11, 12, 14, 17, 18];

/** Throws `Unavailable`, for this key only, if the row cannot be read. */
export function toKey(row: KeyRow): Key {
  const id = row[0];
  const rateLimits = read.rateLimits(row[13]);
  return {
    id,
    apiId: row[1],
    counter: readBalance(row[2], row[3]),
    ownerId: read.text(row[4]),
    name: read.text(row[5]),
    environment: read.text(row[6]),
    meta: read.json(row[7]),
    enabled: read.flag(row[8]),
    expiresAtMs: read.moment(row[9]),
    rateLimit: read.rateLimit(row[10], row[11], row[12]),
    rateLimits: rateLimits && limitsOfKey(id, rateLimits),
    costMax: read.whole(row[14], 2147483647),
    permissions: read.texts(row[15]),
    ipAllow: readRanges(row[16]),
    hasOwnerRecord: row[17] === 1,
    secretExpiresAtMs: row[18] ?? undefined,
  };
}

/** What is looked up of an owner, in the order of its row. */
export const ownerColumns = [
  "owners.id",
  "counters.remaining",
  "counters.refill_interval",
  "owners.enabled",
  "owners.api_ids",
  "owners.ratelimits",
] as const;

export type OwnerRow = readonly [
  string,
  number | null,
  string | null,
  number,
  string | null,
  string | null,
];

/** Where the row has numbers. */
export const ownerNumbers: readonly number[] = [1, 3];

/** Throws `Unavailable`, for this owner only, if the row cannot be read. */
export function toOwner(row: OwnerRow): Owner {
  const id = row[0];
  const rateLimits = read.rateLimits(row[5]);
  return {
    id,
    counter: readBalance(row[1], row[2]),
    enabled: read.flag(row[3]),
    apiIds: read.texts(row[4]),
    rateLimits: rateLimits && limitsOfOwner(id, rateLimits),
  };
}
