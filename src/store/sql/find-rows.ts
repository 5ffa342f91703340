import { type Kysely, type RawBuilder, sql } from "kysely";
import { keyColumns, ownerColumns } from "../../../gen/resources/store/found-rows.ts";
import { counterOfOwner } from "../../domain/subject.ts";
import type { Schema } from "./schema.ts";

/*
 * What verifications look up of keys and owners. Rows are read as arrays, in the order of these columns: objects would take
 * longer to make than a row to find.
 */

/**
 * Everything of a key that a verification needs, as a `KeyRow`. Each engine adds its condition on `keys.digest`.
 * `counterKey`: the id under which a counter is looked for; null is not looked for.
 */
export function selectKeys(db: Kysely<Schema>, counterKey: RawBuilder<string> = keyId) {
  return db
    .selectFrom("keys")
    .leftJoin("counters", (join) => join.on("counters.subject", "=", counterKey))
    .select([...keyColumns, hasOwnerRecord.as("has_owner_record"), noEnd.as("secret_expires_at_ms")]);
}

/** The same for a secret that was replaced. The condition is on `ending_secrets.digest`. */
export function selectKeysOfEndingSecrets(db: Kysely<Schema>, counterKey: RawBuilder<string> = keyId) {
  return db
    .selectFrom("ending_secrets")
    .innerJoin("keys", "keys.id", "ending_secrets.key_id")
    .leftJoin("counters", (join) => join.on("counters.subject", "=", counterKey))
    .select([...keyColumns, hasOwnerRecord.as("has_owner_record")])
    .select("ending_secrets.expires_at_ms as secret_expires_at_ms");
}

const keyId = sql.ref<string>("keys.id");
const noEnd = sql<number | null>`CAST(NULL AS bigint)`;

/** 1 or null. A SELECT for one row: nothing is searched for a key that names no owner, and no engine reads the whole table. */
const hasOwnerRecord = sql<number | null>`CASE WHEN keys.owner_id IS NOT NULL
  THEN (SELECT 1 FROM owners WHERE owners.id = keys.owner_id) END`;

/** Null for a key without a counter. It saves the embedded engine a search; look-ups on Postgres take twice as long with it. */
export const counterKeyIfAny = sql<string>`case when has_counter = 1 then keys.id end`;

/** In SQL: the subject of an owner's counter, by its row. */
export function ownerCounter(table = "owners"): RawBuilder<string> {
  return sql<string>`${sql.lit(counterOfOwner(""))} || ${sql.ref(`${table}.id`)}`;
}

/** Null for an owner without a counter: see `counterKeyIfAny`. */
export function ownerCounterIfAny(table = "owners"): RawBuilder<string> {
  return sql<string>`CASE WHEN has_counter = 1 THEN ${ownerCounter(table)} END`;
}

/** Everything of an owner that a verification needs, as an `OwnerRow`. Each engine adds its condition on `owners.id`. */
export function selectOwners(db: Kysely<Schema>, counter = ownerCounter()) {
  return db
    .selectFrom("owners")
    .leftJoin("counters", (join) => join.on("counters.subject", "=", counter))
    .select(ownerColumns);
}
