import { type CompiledQuery, type Kysely, type RawBuilder, sql } from "kysely";
import { remainingMax } from "../../domain/usage.ts";
import type { IndexDefinition } from "./index-definition.ts";
import { hasCounterCheck, ownerHasCounterCheck, remainingMaxCheck, remainingMinCheck, type Schema } from "./schema.ts";

export type Migration = StatementsMigration | IndexMigration;

/** Statements that are applied in one transaction. They must be quick: replicas serve on the same tables meanwhile. */
export interface StatementsMigration {
  readonly name: string;
  /** `inPrimaryKey`: see `SqlEngine`. */
  up(db: Kysely<Schema>, inPrimaryKey: RawBuilder<unknown>): readonly CompiledQuery[];
}

/**
 * An index on a table that may have many rows. On Postgres it is built while replicas serve, outside a transaction, and
 * without the time-outs of requests. (An index on a table that is made by the same migration belongs into `up`.)
 */
export interface IndexMigration {
  readonly name: string;
  readonly index: IndexDefinition;
}

/** In the order in which they are applied. Never edit one that has been released: add another. */
export const migrations: readonly StatementsMigration[] = [
  {
    name: "0001-first",
    up: (db, inPrimaryKey) => [
      db.schema
        .createTable("apis")
        .addColumn("id", "text", (column) => column.primaryKey())
        .addColumn("name", "text")
        .addColumn("defaults", "text", (column) => column.notNull())
        .addColumn("is_deleting", "integer", (column) => column.notNull())
        .addColumn("created_at_ms", "bigint", (column) => column.notNull())
        .addColumn("updated_at_ms", "bigint", (column) => column.notNull())
        .addColumn("version", "bigint", (column) => column.notNull())
        .addColumn("event_id", "text", (column) => column.notNull())
        .compile(),
      db.schema.createIndex("apis_by_creation").on("apis").columns(["created_at_ms", "id"]).compile(),
      db.schema
        .createTable("keys")
        // Of the key's secret. The primary key, so that a look-up finds everything in one search.
        .addColumn("digest", "text", (column) => column.primaryKey())
        // Ids sort by the time at which they were made.
        .addColumn("id", "text", (column) => column.notNull().unique())
        .addColumn("api_id", "text", (column) => column.notNull().references("apis.id"))
        .addColumn("start", "text", (column) => column.notNull())
        .addColumn("owner_id", "text")
        .addColumn("name", "text")
        .addColumn("meta", "text", (column) => column.notNull())
        .addColumn("enabled", "integer", (column) => column.notNull())
        .addColumn("expires_at_ms", "bigint")
        .addColumn("ratelimit_async", "integer")
        .addColumn("ratelimit_limit", "bigint")
        .addColumn("ratelimit_duration_ms", "bigint")
        .addColumn("ratelimits", "text")
        .addColumn("cost_max", "bigint")
        .addColumn("permissions", "text")
        .addColumn("ip_allow", "text")
        .addColumn("has_counter", "integer", (column) => column.notNull())
        .addCheckConstraint(hasCounterCheck, sql`has_counter in (0, 1)`)
        .addColumn("created_at_ms", "bigint", (column) => column.notNull())
        .addColumn("updated_at_ms", "bigint", (column) => column.notNull())
        .addColumn("version", "bigint", (column) => column.notNull())
        .addColumn("event_id", "text", (column) => column.notNull())
        .addColumn("secret_created_at_ms", "bigint", (column) => column.notNull())
        .modifyEnd(inPrimaryKey)
        .compile(),
      db.schema
        .createTable("ending_secrets")
        .addColumn("digest", "text", (column) => column.primaryKey())
        .addColumn("key_id", "text", (column) => column.notNull().unique().references("keys.id").onDelete("cascade"))
        .addColumn("start", "text", (column) => column.notNull())
        .addColumn("created_at_ms", "bigint", (column) => column.notNull())
        .addColumn("expires_at_ms", "bigint", (column) => column.notNull())
        .modifyEnd(inPrimaryKey)
        .compile(),
      db.schema.createIndex("ending_secrets_expiry").on("ending_secrets").column("expires_at_ms").compile(),
      // For lists. What they filter by is in the index too, so that keys which do not match need not be read.
      db.schema.createIndex("keys_by_api").on("keys").columns(["api_id", "id", "enabled", "expires_at_ms"]).compile(),
      db.schema
        .createIndex("keys_by_owner")
        .on("keys")
        .columns(["owner_id", "id", "enabled", "expires_at_ms"])
        .where("owner_id", "is not", null)
        .compile(),
      db.schema
        .createIndex("keys_by_owner_and_api")
        .on("keys")
        .columns(["owner_id", "api_id", "id", "enabled", "expires_at_ms"])
        .where("owner_id", "is not", null)
        .compile(),
      db.schema
        .createIndex("keys_by_name")
        .on("keys")
        .columns(["api_id", "name", "id"])
        .where("name", "is not", null)
        .compile(),
      db.schema.createIndex("keys_by_start").on("keys").columns(["api_id", "start", "id"]).compile(),
      // Keys do not refer to it: most name owners that have no record.
      db.schema
        .createTable("owners")
        .addColumn("id", "text", (column) => column.primaryKey())
        .addColumn("list_id", "text", (column) => column.notNull().unique())
        .addColumn("meta", "text", (column) => column.notNull())
        .addColumn("enabled", "integer", (column) => column.notNull())
        .addColumn("api_ids", "text")
        .addColumn("first_api_id", "text")
        .addColumn("ratelimits", "text")
        .addColumn("has_counter", "integer", (column) => column.notNull())
        .addCheckConstraint(ownerHasCounterCheck, sql`has_counter in (0, 1)`)
        .addColumn("created_at_ms", "bigint", (column) => column.notNull())
        .addColumn("updated_at_ms", "bigint", (column) => column.notNull())
        .addColumn("version", "bigint", (column) => column.notNull())
        .addColumn("event_id", "text", (column) => column.notNull())
        .modifyEnd(inPrimaryKey)
        .compile(),
      // For root keys that are limited to APIs.
      db.schema
        .createIndex("owners_by_first_api")
        .on("owners")
        .columns(["first_api_id", "list_id"])
        .where("first_api_id", "is not", null)
        .compile(),
      db.schema
        .createTable("counters")
        .addColumn("subject", "text", (column) => column.primaryKey())
        .addColumn("remaining", "bigint", (column) => column.notNull())
        .addCheckConstraint(remainingMinCheck, sql`remaining >= 0`)
        .addCheckConstraint(remainingMaxCheck, sql`remaining <= ${sql.lit(remainingMax)}`)
        .addColumn("refill_interval", "text", (column) => column.check(sql`refill_interval in ('daily', 'monthly')`))
        .addColumn("refill_amount", "bigint")
        .addColumn("refill_carry_over", "integer")
        .addColumn("refilled_through_ms", "bigint")
        .modifyEnd(inPrimaryKey)
        .compile(),
      db.schema
        .createTable("permit_windows")
        .addColumn("subject", "text", (column) => column.primaryKey())
        .addColumn("gen", "bigint", (column) => column.notNull())
        .addColumn("ends_at_ms", "bigint", (column) => column.notNull())
        .addColumn("window_duration_ms", "bigint", (column) => column.notNull())
        .addColumn("clamped_ends_at_ms", "bigint", (column) => column.notNull())
        .addColumn("granted", "bigint", (column) => column.notNull().check(sql`granted >= 0`))
        .addColumn("spent", "bigint", (column) => column.notNull().check(sql`spent >= 0`))
        .addColumn("contended", "integer", (column) => column.notNull())
        .addColumn("rule_limit", "bigint")
        .addColumn("rule_duration_ms", "bigint")
        .addColumn("owner_id", "text")
        .modifyEnd(inPrimaryKey)
        .compile(),
      db.schema
        .createIndex("permit_windows_by_owner")
        .on("permit_windows")
        .column("owner_id")
        .where("owner_id", "is not", null)
        .compile(),
      db.schema
        .createTable("root_keys")
        // The generated one has a fixed id: of several first starts only one can store its root key.
        .addColumn("id", "text", (column) => column.primaryKey())
        .addColumn("digest", "text", (column) => column.notNull().unique())
        .addColumn("start", "text", (column) => column.notNull())
        .addColumn("name", "text")
        .addColumn("permissions", "text", (column) => column.notNull())
        .addColumn("api_ids", "text")
        .addColumn("expires_at_ms", "bigint")
        .addColumn("created_at_ms", "bigint", (column) => column.notNull())
        .addColumn("updated_at_ms", "bigint", (column) => column.notNull())
        .addColumn("version", "bigint", (column) => column.notNull())
        .addColumn("event_id", "text", (column) => column.notNull())
        .compile(),
      db.schema
        .createTable("events")
        // Ids sort by the time at which they were made.
        .addColumn("id", "text", (column) => column.primaryKey())
        .addColumn("at_ms", "bigint", (column) => column.notNull())
        .addColumn("method", "text", (column) => column.notNull())
        .addColumn("actor", "text", (column) => column.notNull())
        .addColumn("target_id", "text", (column) => column.notNull())
        .addColumn("api_id", "text")
        .addColumn("api_ids", "text")
        .addColumn("fields", "text", (column) => column.notNull())
        .addColumn("version", "bigint")
        .modifyEnd(inPrimaryKey)
        .compile(),
      db.schema.createIndex("events_by_target").on("events").columns(["target_id", "id"]).compile(),
      db.schema.createIndex("events_by_actor").on("events").columns(["actor", "id"]).compile(),
      db.schema.createIndex("events_by_method").on("events").columns(["method", "id"]).compile(),
      // For root keys that are limited to APIs.
      db.schema.createIndex("events_by_target_and_api").on("events").columns(["target_id", "api_id", "id"]).compile(),
      db.schema.createIndex("events_by_api").on("events").columns(["api_id", "id"]).compile(),
      db.schema
        .createTable("idempotency")
        .addColumn("lookup", "text", (column) => column.primaryKey())
        .addColumn("request_digest", "text", (column) => column.notNull())
        .addColumn("sealed_answer", "text", (column) => column.notNull())
        .addColumn("target_id", "text", (column) => column.notNull())
        .addColumn("expires_at_ms", "bigint", (column) => column.notNull())
        .compile(),
      db.schema.createIndex("idempotency_expiry").on("idempotency").column("expires_at_ms").compile(),
      db.schema
        .createTable("changes")
        .addColumn("transaction_id", "bigint", (column) => column.notNull())
        .addColumn("kind", "text", (column) =>
          column.notNull().check(sql`kind in ('key', 'owner', 'newOwner', 'rootKeys', 'everything')`),
        )
        .addColumn("target_id", "text")
        .addColumn("digests", "text")
        .compile(),
      db.schema.createIndex("changes_by_transaction").on("changes").column("transaction_id").compile(),
      // There is always a newest row, so that the embedded engine can number the next one.
      sql`INSERT INTO changes (transaction_id, kind) VALUES (0, 'everything')`.compile(db),
      db.schema
        .createTable("change_feed")
        // Always 1: there is one row.
        .addColumn("slot", "integer", (column) => column.primaryKey())
        .addColumn("epoch", "text", (column) => column.notNull())
        .addColumn("tidied_before", "bigint", (column) => column.notNull())
        .addColumn("has_imported_keys", "integer", (column) => column.notNull())
        .compile(),
      db.schema
        .createTable("unfinished_copy")
        // Always 1: there is one row at most.
        .addColumn("slot", "integer", (column) => column.primaryKey())
        .addColumn("id", "text", (column) => column.notNull())
        .addColumn("source", "text")
        .addColumn("copied_table", "text")
        .addColumn("copied_through", "text")
        .compile(),
      sql`INSERT INTO change_feed VALUES (1, CAST(random() AS text), 0, 0)`.compile(db),
    ],
  },
  {
    // They began with o/ as limits of owners do: the counter of an owner `a/b` and the limit `a` of an owner `b` had one name.
    name: "0002-counters-of-owners",
    up: (db) => [sql`UPDATE counters SET subject = 'c/' || substr(subject, 3) WHERE subject LIKE 'o/%'`.compile(db)],
  },
  {
    name: "0003-environments",
    up: (db) => [sql`ALTER TABLE keys ADD COLUMN environment text`.compile(db)],
  },
  {
    name: "0004-required-owners",
    up: (db) => [sql`ALTER TABLE apis ADD COLUMN owners_required integer NOT NULL DEFAULT 0`.compile(db)],
  },
];
