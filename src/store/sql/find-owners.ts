import { type Kysely, type RawBuilder, sql } from "kysely";
import { limitsOfOwner } from "../../domain/limits.ts";
import type { Owner } from "../../domain/owner.ts";
import { counterOfOwner } from "../../domain/subject.ts";
import { balanceOf, readRateLimits, readTexts } from "./find-keys.ts";
import type { Schema } from "./schema.ts";

/** In SQL: the subject of an owner's counter, by its row. */
export function ownerCounter(table = "owners"): RawBuilder<string> {
  return sql<string>`${sql.lit(counterOfOwner(""))} || ${sql.ref(`${table}.id`)}`;
}

/** Null for an owner without a counter: see `counterKeyIfAny`. */
export function ownerCounterIfAny(table = "owners"): RawBuilder<string> {
  return sql<string>`CASE WHEN has_counter = 1 THEN ${ownerCounter(table)} END`;
}

/** Everything of an owner that a verification needs, in the order of `OwnerRow`. Each engine adds its condition on `owners.id`. */
export function selectOwners(db: Kysely<Schema>, counter = ownerCounter()) {
  return db
    .selectFrom("owners")
    .leftJoin("counters", (join) => join.on("counters.subject", "=", counter))
    .select(["owners.id", "owners.enabled", "counters.remaining", "counters.refill_interval"])
    .select(["owners.api_ids", "owners.ratelimits"]);
}

export type OwnerRow = readonly [
  id: string,
  enabled: number,
  remaining: number | null,
  refillInterval: string | null,
  apiIds: string | null,
  ratelimits: string | null,
];

/** Throws `Unavailable`, for this owner only, if the row cannot be read. */
export function toOwner([id, enabled, remaining, interval, apiIds, ratelimits]: OwnerRow): Owner {
  const rateLimits = readRateLimits(ratelimits);
  return {
    id,
    enabled: enabled === 1,
    apiIds: readTexts(apiIds),
    limits: rateLimits && limitsOfOwner(id, rateLimits),
    counter: balanceOf(remaining, interval),
  };
}
