import { sql } from "kysely";
import { type Migration, migrations } from "../sql/migrations.ts";

/** The shared tables, and what only this engine needs. `usage_writers` serves the lanes of both ledgers. */
export const pgMigrations: readonly Migration[] = [
  ...migrations,
  {
    name: "pg-0001-usage-writers",
    up: (db) => [
      db.schema
        .createTable("usage_writers")
        .addColumn("id", "text", (column) => column.primaryKey())
        .addColumn("seq", "bigint", (column) => column.notNull())
        .addColumn("nonce", "text", (column) => column.notNull())
        .addColumn("result", "jsonb")
        .addColumn("updated_at", "timestamptz", (column) => column.notNull())
        .compile(),
      // Rows that change with every batch keep their new version on the same page, beside the old one.
      sql`ALTER TABLE usage_writers SET (fillfactor = 20)`.compile(db),
      sql`ALTER TABLE key_usage SET (fillfactor = 50)`.compile(db),
    ],
    down: (db) => [db.schema.dropTable("usage_writers").compile()],
  },
  {
    name: "pg-0002-permits",
    up: (db) => [sql`ALTER TABLE key_permits SET (fillfactor = 50)`.compile(db)],
    down: (db) => [sql`ALTER TABLE key_permits RESET (fillfactor)`.compile(db)],
  },
  {
    name: "pg-0003-change-readers",
    up: (db) => [
      db.schema
        .createTable("change_readers")
        .addColumn("id", "text", (column) => column.primaryKey())
        .addColumn("heartbeats", "bigint", (column) => column.notNull())
        .addColumn("updated_at", "timestamptz", (column) => column.notNull())
        .compile(),
      sql`ALTER TABLE change_readers SET (fillfactor = 20)`.compile(db),
      // For rows that are added by hand.
      sql`ALTER TABLE changes ALTER COLUMN transaction_id SET DEFAULT pg_current_xact_id()::text::bigint`.compile(db),
    ],
    down: (db) => [
      sql`ALTER TABLE changes ALTER COLUMN transaction_id DROP DEFAULT`.compile(db),
      db.schema.dropTable("change_readers").compile(),
    ],
  },
];
