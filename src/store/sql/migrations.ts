import { type CompiledQuery, type Kysely, type RawBuilder, sql } from "kysely";
import type { Schema } from "./schema.ts";

export interface Migration {
  readonly name: string;
  /** `inPrimaryKey`: see `SqlEngine`. */
  up(db: Kysely<Schema>, inPrimaryKey: RawBuilder<unknown>): readonly CompiledQuery[];
  down(db: Kysely<Schema>): readonly CompiledQuery[];
}

/** In the order in which they are applied. Never edit one that has been released: add another. */
export const migrations: readonly Migration[] = [
  {
    name: "0001-keys-by-digest",
    up: ({ schema }, inPrimaryKey) => [
      schema
        .createTable("apis")
        .addColumn("id", "text", (column) => column.primaryKey())
        .addColumn("created_at_ms", "bigint", (column) => column.notNull())
        .compile(),
      schema
        .createTable("keys")
        // Of the key's secret. The primary key, so that a look-up finds everything in one search.
        .addColumn("digest", "text", (column) => column.primaryKey())
        .addColumn("id", "text", (column) => column.notNull().unique())
        .addColumn("api_id", "text", (column) => column.notNull().references("apis.id"))
        .addColumn("start", "text", (column) => column.notNull())
        .addColumn("owner_id", "text")
        .addColumn("name", "text")
        .addColumn("meta", "text", (column) => column.notNull())
        .addColumn("enabled", "integer", (column) => column.notNull())
        .addColumn("expires_at_ms", "bigint")
        .addColumn("created_at_ms", "bigint", (column) => column.notNull())
        .modifyEnd(inPrimaryKey)
        .compile(),
      schema
        .createTable("key_usage")
        .addColumn("key_id", "text", (column) => column.primaryKey().references("keys.id").onDelete("cascade"))
        .addColumn("remaining", "bigint", (column) => column.notNull().check(sql`remaining >= 0`))
        .addColumn("refill_interval", "text", (column) => column.check(sql`refill_interval in ('daily', 'monthly')`))
        .addColumn("refill_amount", "bigint")
        .addColumn("refill_carry_over", "integer")
        .addColumn("refilled_through_ms", "bigint")
        .modifyEnd(inPrimaryKey)
        .compile(),
    ],
    down: ({ schema }) => [
      schema.dropTable("key_usage").compile(),
      schema.dropTable("keys").compile(),
      schema.dropTable("apis").compile(),
    ],
  },
  {
    name: "0002-root-keys",
    up: ({ schema }) => [
      schema
        .createTable("root_keys")
        // Always 1, and the primary key: of several first starts only one can store its root key.
        .addColumn("slot", "integer", (column) => column.primaryKey())
        .addColumn("digest", "text", (column) => column.notNull())
        .addColumn("created_at_ms", "bigint", (column) => column.notNull())
        .compile(),
    ],
    down: ({ schema }) => [schema.dropTable("root_keys").compile()],
  },
  {
    name: "0003-idempotency",
    up: ({ schema }) => [
      schema
        .createTable("idempotency")
        .addColumn("lookup", "text", (column) => column.primaryKey())
        .addColumn("request_digest", "text", (column) => column.notNull())
        .addColumn("sealed_answer", "text", (column) => column.notNull())
        .addColumn("expires_at_ms", "bigint", (column) => column.notNull())
        .compile(),
      schema.createIndex("idempotency_expiry").on("idempotency").column("expires_at_ms").compile(),
    ],
    down: ({ schema }) => [schema.dropTable("idempotency").compile()],
  },
  {
    name: "0004-rate-limits",
    up: ({ schema }) => [
      schema.alterTable("keys").addColumn("ratelimit_async", "integer").compile(),
      schema.alterTable("keys").addColumn("ratelimit_limit", "bigint").compile(),
      schema.alterTable("keys").addColumn("ratelimit_duration_ms", "bigint").compile(),
    ],
    down: ({ schema }) => [
      schema.alterTable("keys").dropColumn("ratelimit_duration_ms").compile(),
      schema.alterTable("keys").dropColumn("ratelimit_limit").compile(),
      schema.alterTable("keys").dropColumn("ratelimit_async").compile(),
    ],
  },
  {
    name: "0005-permits",
    up: (db, inPrimaryKey) => [
      db.schema
        .createTable("key_permits")
        .addColumn("key_id", "text", (column) => column.primaryKey().references("keys.id").onDelete("cascade"))
        .addColumn("gen", "bigint", (column) => column.notNull())
        .addColumn("ends_at_ms", "bigint", (column) => column.notNull())
        .addColumn("granted", "bigint", (column) => column.notNull().check(sql`granted >= 0`))
        .addColumn("spent", "bigint", (column) => column.notNull().check(sql`spent >= 0`))
        .addColumn("contended", "integer", (column) => column.notNull())
        .addColumn("ratelimit_limit", "bigint")
        .addColumn("ratelimit_duration_ms", "bigint")
        .modifyEnd(inPrimaryKey)
        .compile(),
      sql`INSERT INTO key_permits
        SELECT id, 0, 0, 0, 0, 0, ratelimit_limit, ratelimit_duration_ms FROM keys WHERE ratelimit_async = 0`.compile(
        db,
      ),
    ],
    down: ({ schema }) => [schema.dropTable("key_permits").compile()],
  },
  {
    name: "0006-clamped-windows",
    up: (db) => [
      db.schema
        .alterTable("key_permits")
        .addColumn("window_duration_ms", "bigint", (column) => column.notNull().defaultTo(0))
        .compile(),
      db.schema
        .alterTable("key_permits")
        .addColumn("clamped_ends_at_ms", "bigint", (column) => column.notNull().defaultTo(0))
        .compile(),
      // The duration that a window was opened with is unknown, because its rule may have changed: so the longest one.
      // A shorter one could end the window early, and grant it twice.
      sql`UPDATE key_permits SET window_duration_ms = 2592000000 WHERE gen > 0`.compile(db),
    ],
    down: ({ schema }) => [
      schema.alterTable("key_permits").dropColumn("clamped_ends_at_ms").compile(),
      schema.alterTable("key_permits").dropColumn("window_duration_ms").compile(),
    ],
  },
  {
    name: "0007-change-feed",
    up: (db) => [
      db.schema
        .createTable("changes")
        .addColumn("transaction_id", "bigint", (column) => column.notNull())
        .addColumn("kind", "text", (column) => column.notNull().check(sql`kind in ('key', 'rootKeys', 'everything')`))
        .addColumn("key_id", "text")
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
        .compile(),
      sql`INSERT INTO change_feed VALUES (1, CAST(random() AS text), 0)`.compile(db),
    ],
    down: ({ schema }) => [schema.dropTable("change_feed").compile(), schema.dropTable("changes").compile()],
  },
];
